#!/usr/bin/env python3
"""site-test.py SITE: opens a site of dev/site in Chromium, from its files: every link inside it leads somewhere, the search finds a
page, the example reports have figures, nothing is fetched from elsewhere, and no error is on the console."""
import html.parser, pathlib, re, sys, tempfile, urllib.parse

sys.dont_write_bytecode = True
from chromium import Browser

SITE = pathlib.Path(sys.argv[1]).resolve()
FAILURES = []


def check(truth, what):
    if not truth:
        FAILURES.append(what)
        print(f"  FAILED: {what}")


class Page(html.parser.HTMLParser):
    """Links and anchors of a page."""
    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[k] for k in ("id", "name") if values.get(k)}
        self.links += [values[k] for k in ("href", "src") if values.get(k)]


def links():
    pages = {path: Page(path) for path in sorted(SITE.rglob("*.html"))}
    for path, page in pages.items():
        if path.name in ("print.html", "404.html", "toc.html"):
            continue
        for link in page.links:
            to = urllib.parse.urlsplit(link)
            if to.scheme or to.netloc:
                check(to.scheme in ("http", "https", "data", "mailto"), f"{path.name}: {link}")
                continue
            file = (path.parent / urllib.parse.unquote(to.path)).resolve() if to.path else path
            check(file.exists(), f"{path.relative_to(SITE)}: {link} is not there")
            if to.fragment and file in pages:
                check(urllib.parse.unquote(to.fragment) in pages[file].ids, f"{path.relative_to(SITE)}: {link}, an anchor that is not there")
    return pages


def main():
    pages = links()
    check(len(pages) > 60, f"only {len(pages)} pages")
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        at = lambda name: (SITE / name).as_uri()
        browser.navigate(at("index.html"))
        check("Tailbound" in browser.js("document.title"), "the title of the first page")
        browser.js("document.querySelector('[id$=search-toggle]').click()")
        browser.js("new Promise(done => setTimeout(done, 1500))")
        browser.js("""(() => { const bar = document.querySelector('input[id$=searchbar]');
            bar.value = 'retransmissions lateness'; bar.dispatchEvent(new InputEvent('input', { bubbles: true }));
            bar.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true })); })()""")
        browser.js("new Promise(done => setTimeout(done, 2500))")
        found = browser.js("[...document.querySelectorAll('[id$=searchresults] a')].map(a => a.getAttribute('href'))")
        check(any("watch.html" in link for link in found), f"the search for what is on the page of watching finds {found[:5]}")
        browser.navigate(at("watch.html"))
        check(browser.js("document.querySelectorAll('nav a, mdbook-sidebar-scrollbox a').length") > 50, "the list of pages beside a page")
        for report in sorted((SITE / "examples").rglob("*.html")):
            browser.navigate(report.as_uri())
            check(browser.js("document.querySelectorAll('svg').length") > 0, f"{report.relative_to(SITE)} has no figure")
        urls = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
        check(all(re.match(r"(file|data|blob|about):", url) for url in urls), f"fetched: {[u for u in urls if u.startswith('http')][:3]}")
        errors = [e["params"] for e in browser.events if e.get("method") == "Runtime.exceptionThrown"]
        errors += [e["params"]["entry"] for e in browser.events if e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"]
        check(not errors, f"errors on the console: {errors[:2]}")
        browser.close()
    print(f"{len(pages)} pages, {len(urls)} files opened")
    sys.exit(bool(FAILURES))


if __name__ == "__main__":
    main()
