"""Controls Chromium for a test, and counts the colours of a screenshot."""
import collections, json, os, struct, subprocess, sys, zlib

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"]


class Browser:
    """Chromium, controlled over two pipes by JSON messages, each of which ends with a zero byte."""

    def __init__(self, profile):
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()

        def give():
            # The pipes may themselves have the descriptors 3 and 4: first move the pipes to other numbers, then to 3 and 4.
            to, by = os.dup(to_browser), os.dup(from_browser)
            import fcntl
            to, by = fcntl.fcntl(to, fcntl.F_DUPFD, 10), fcntl.fcntl(by, fcntl.F_DUPFD, 10)
            os.dup2(to, 3), os.dup2(by, 4)

        self.process = subprocess.Popen(
            ["chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"], close_fds=False,
            preexec_fn=give, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser), os.close(from_browser)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def message(self):
        while b"\0" not in self.buffer:
            part = os.read(self.read, 1 << 20)
            if not part:
                sys.exit("the browser ended by itself")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def loads(self, act):
        """Calls the function that opens a page, and waits until this page has loaded; events of the previous page may arrive late."""
        load = lambda e: e["params"]["loaderId"] if e.get("method") == "Page.lifecycleEvent" and e["params"]["name"] == "load" else None
        before = self.call("Page.getFrameTree")["frameTree"]["frame"]["loaderId"]
        act()
        while not any(load(e) not in (None, before) for e in self.events):
            self.events.append(self.message())
        self.events = [e for e in self.events if load(e) is None]

    def navigate(self, url):
        self.loads(lambda: self.call("Page.navigate", url=url))

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def close(self):
        self.session = None
        try:
            self.call("Browser.close")
        except (SystemExit, OSError):
            pass
        self.process.wait(timeout=20)


def pixels(png):
    """Colours of a PNG of 8-bit RGB or RGBA, with how often each occurs."""
    at, data, header = 8, b"", None
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + size]
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        if kind == b"IDAT":
            data += body
        at += size + 12
    width, height, _, colour, *_ = header
    step = {2: 3, 6: 4}[colour]
    raw, colours, before = zlib.decompress(data), collections.Counter(), bytearray(width * step)
    for y in range(height):
        kind, line = raw[y * (width * step + 1)], bytearray(raw[y * (width * step + 1) + 1:(y + 1) * (width * step + 1)])
        for i in range(len(line)):
            left, up, corner = (line[i - step] if i >= step else 0), before[i], (before[i - step] if i >= step else 0)
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + up) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif kind == 4:
                nearest = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
                line[i] = (line[i] + nearest) & 255
        colours.update(bytes(line[i:i + 3]) for i in range(0, len(line), step))
        before = line
    return colours
