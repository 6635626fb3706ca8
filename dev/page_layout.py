"""Checks the layout of the report page in a browser: figures follow its width, no table is cut off, the navigation stays at
the top, terms are explained, and axe-core finds no serious problem. `check(truth, what)` counts a failure."""
import json, pathlib, subprocess


def layout(browser, width, check):
    """Every figure is drawn for the width of the page, no table is cut off, and the navigation stays at the top."""
    pictures = browser.js("""[...document.querySelectorAll('.picture.fitted, .waterfall.fitted')].filter((p) => p.clientWidth).map((p) => ({
        name: p.closest('section').id, wide: p.clientWidth, scroll: p.scrollWidth,
        drawn: [...p.children].filter((s) => s.matches('svg[data-plot]')).map((s) => s.viewBox.baseVal.width),
        outside: [...p.querySelectorAll('svg text')].filter((t) => { const b = t.getBoundingClientRect(), box = p.getBoundingClientRect();
            return b.width && (b.left < box.left - 2 || b.right > box.right + 2) && b.width < box.width; }).map((t) => t.textContent) }))""")
    check(len(pictures) > 0, "figures are fitted")
    for one in pictures:
        check(all(abs(d - one["wide"]) <= 1 for d in one["drawn"]), f"{one['name']} is drawn {one['drawn']} wide in {one['wide']} px")
        check(one["scroll"] <= one["wide"] + 1, f"{one['name']} does not scroll: {one}")
        check(not one["outside"], f"words of {one['name']} lie outside: {one['outside']}")
    tables = browser.js("""[...document.querySelectorAll('.scroll')].filter((s) => s.clientWidth && !s.closest('details')).map((s) => ({
        name: s.closest('section').id, cut: s.scrollWidth - s.clientWidth, scrolls: ['auto', 'scroll'].includes(getComputedStyle(s).overflowX), reached: s.tabIndex === 0 }))""")
    for one in tables:
        check(one["cut"] <= 1 or (width < 1000 and one["scrolls"] and one["reached"]), f"the table of {one['name']} is cut off by {one['cut']} px")
    cards(browser, width, check)
    stuck = browser.js("""(() => { scrollTo(0, document.documentElement.scrollHeight / 2);
        const nav = document.querySelector('nav').getBoundingClientRect();
        const lost = [...document.querySelectorAll('nav a')].filter((a) => !document.getElementById(a.hash.slice(1))).map((a) => a.hash);
        const groups = [...document.querySelectorAll('nav details')], beyond = groups.filter((g) => { g.open = true;
            const b = g.querySelector('div').getBoundingClientRect(); g.open = false; return b.left < 0 || b.right > document.documentElement.clientWidth; });
        const answer = { top: nav.top, lost, beyond: beyond.map((g) => g.innerText), groups: groups.length };
        scrollTo(0, 0); return answer; })()""")
    check(abs(stuck["top"]) < 1 and stuck["groups"] > 2, f"the navigation stays at the top: {stuck}")
    check(not stuck["lost"] and not stuck["beyond"], f"links of the navigation lead somewhere, and their lists are seen: {stuck}")


PHONE = 480


def cards(browser, width, check):
    """On a phone, each row of a wide table is a card with the names of its columns, and nothing of it is cut off."""
    tables = browser.js("""[...document.querySelectorAll('table.cards')].filter((t) => t.clientWidth && t.tBodies[0].rows.length).map((t) => ({
        name: t.closest('section')?.id ?? 'page', row: getComputedStyle(t.tBodies[0].rows[0]).display, cut: t.parentNode.scrollWidth - t.parentNode.clientWidth,
        nameless: [...t.querySelectorAll('td:not(:empty)')].filter((c) => !('label' in c.dataset)).length,
        outside: [...t.querySelectorAll('td')].filter((c) => c.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length }))""")
    check(len(tables) > 0, "wide tables are there")
    for one in tables:
        check(one["row"] == ("block" if width <= PHONE else "table-row"), f"rows of {one['name']} at {width} px: {one['row']}")
        check(one["nameless"] == 0, f"{one['nameless']} cells of {one['name']} have no name")
        check(width > PHONE or (one["cut"] <= 1 and one["outside"] == 0), f"cards of {one['name']} are cut off: {one}")


def fitted(browser, what, check):
    """The figures of a page without choices are drawn for its width."""
    found = browser.js("[...document.querySelectorAll('.picture')].map((p) => [p.clientWidth, p.scrollWidth, p.querySelector('svg').viewBox.baseVal.width])")
    check(len(found) > 0 and all(abs(drawn - wide) <= 1 and scroll <= wide + 1 for wide, scroll, drawn in found), f"figures of {what} are fitted: {found}")


def resized(browser, width, check):
    """Figures follow the width of the window without a new load."""
    browser.call("Emulation.setDeviceMetricsOverride", width=640, height=800, deviceScaleFactor=1, mobile=False)
    wide = browser.js("""new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
        const p = document.querySelector('.picture.fitted'); r([p.clientWidth, p.querySelector('svg').viewBox.baseVal.width]); }, 50))))""")
    check(wide[0] < 640 and abs(wide[0] - wide[1]) <= 1, f"figures follow the window: {wide}")
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    browser.js("new Promise((r) => setTimeout(r, 100))")


def terms(browser, check):
    """A term is explained by keyboard, and on paper."""
    told = browser.js("""(() => { const term = document.querySelector('dfn'); term.focus();
        const t = document.getElementById('tooltip'), answer = { word: term.textContent, shown: !t.hidden, text: t.innerText };
        term.blur(); return { ...answer, after: t.hidden, count: document.querySelectorAll('dfn').length }; })()""")
    check(told["count"] > 5 and told["shown"] and told["after"], f"terms are explained: {told}")
    check(told["text"].startswith(told["word"]) and len(told["text"]) > len(told["word"]) + 20, f"the explanation is more than the term: {told}")


AXE = pathlib.Path(__file__).resolve().parent.parent / "target" / "axe" / "axe.min.js"


def accessible(browser, what, check):
    """axe-core finds no serious and no critical problem."""
    if not AXE.exists():
        print(f"  skipped: accessibility of {what}: axe-core is missing; dev/setup test downloads it")
        return
    browser.js(AXE.read_text() + "; 0")
    found = browser.js("""axe.run(document, { resultTypes: ['violations'] }).then((r) => ({ checked: r.testEngine.version, bad: r.violations
        .filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.length} times, ${v.nodes[0].target} ${v.nodes[0].any[0]?.message ?? v.help}`) }))""")
    check(not found["bad"], f"axe-core {found['checked']} finds in {what}: {found['bad']}")


def both_schemes(browser, screenshot, width, name, height, top=0):
    """Screenshots of a part of the page, dark and light."""
    for scheme in ("dark", "light"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        screenshot(browser, f"{width}-{scheme}-{name}", {"x": 0, "y": top, "width": width, "height": height})


BUDGET = """budget: control loop
limits:
  - { where: { driver: udp, payload: 64 B }, round_trip: { p50: 30 us, p99: 11 us, max: 1 s, lost: none }, from_intended: { p99.99: 60 us } }
"""


def budgeted(browser, screenshot, made, binary, check):
    """The page states the outcome of each limit of a budget, as the document does."""
    (made / "budget.yaml").write_text(BUDGET)
    for form in ("json", "html"):
        command = [binary, "report", made / "record", "--format", form, "--budget", made / "budget.yaml", "--out", made / f"budget.{form}"]
        subprocess.run(command, check=False)
    budget = json.loads((made / "budget.json").read_text())["budget"]
    outcomes = {one["outcome"] for one in budget["checks"]}
    check(len(budget["checks"]) == 5 and len(outcomes) == 3, f"limits with all outcomes: {outcomes}")
    for width in (1280, 768, 360):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        browser.navigate((made / "budget.html").as_uri())
        page = browser.js("document.querySelector('#budget').innerText")
        for one in budget["checks"]:
            missing = [part for part in (one["outcome"], one["limit"], *one["found"].rstrip(")").split(" (")) if part not in page]
            check(not missing, f"the page lacks {missing} of {one['what']}")
        layout(browser, width, check)
        top = browser.js("document.querySelector('#budget').getBoundingClientRect().top + scrollY")
        both_schemes(browser, screenshot, width, "budget", 700, max(0, top - 80))
        accessible(browser, f"the page with a budget at {width} px", check)
