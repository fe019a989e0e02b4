"""What a page looks like in a browser: on a desk and on a phone, in light and dark colours."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import browser  # noqa: E402

WIDTHS = {"desk": 1280, "phone": 390}
LEAST_TEXT = 9  # pixels of a letter's height as it is shown
LEAST_CONTRAST = 3.0  # of text and what it is on
# Facts about the page, as JSON. A number of each list is enough to find the fault.
FACTS = """(function () {
  var all = Array.prototype.slice.call(document.querySelectorAll('body *')), root = document.documentElement;
  function box(e) { var r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; }
  function shown(e) { return e.getClientRects().length > 0 && (!e.checkVisibility || e.checkVisibility()); }
  function meet(a, b) { return Math.min(a[2], b[2]) - Math.max(a[0], b[0]) > 1 && Math.min(a[3], b[3]) - Math.max(a[1], b[1]) > 1; }
  function own(e) { return Array.prototype.some.call(e.childNodes, function (n) { return n.nodeType === 3 && n.data.trim(); }); }
  function overlaps(list) {
    var found = [];
    list.forEach(function (e, i) { list.slice(0, i).forEach(function (f) {
      if (meet(box(e), box(f))) found.push(f.textContent.slice(0, 30) + ' / ' + e.textContent.slice(0, 30)); }); });
    return found.slice(0, 5);
  }
  function light(colour) {
    var c = colour.match(/[\\d.]+/g).slice(0, 3).map(function (v) { v /= 255; return v <= 0.04 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
  }
  function clear(colour) { return colour === 'transparent' || colour === 'none' || /, 0\\)$/.test(colour); }
  function ground(e) {
    if (e.namespaceURI.indexOf('svg') > 0) {
      var rect = e.parentNode.querySelector('rect');
      if (rect && e.parentNode.classList.contains('box')) return getComputedStyle(rect).fill;
    }
    for (; e; e = e.parentElement) { var c = getComputedStyle(e).backgroundColor; if (!clear(c)) return c; }
    return 'rgb(255, 255, 255)';
  }
  var texts = all.filter(function (e) { return own(e) && shown(e) && !/^(title|script|style)$/i.test(e.tagName); });
  function size(e) {
    var m = e.getScreenCTM ? e.getScreenCTM() : null;
    return parseFloat(getComputedStyle(e).fontSize) * (m ? m.d : 1);
  }
  var drawn = Array.prototype.slice.call(document.querySelectorAll('svg'));
  var rows = Array.prototype.slice.call(document.querySelectorAll('.cards, .graphs')).filter(shown).map(function (group) {
    var items = Array.prototype.slice.call(group.children), top = items.length ? box(items[0])[1] : 0;
    return [items.length, items.filter(function (e) { return Math.abs(box(e)[1] - top) < 2; }).length];
  });
  return {
    width: [root.scrollWidth, window.innerWidth],
    wide: all.filter(function (e) { return shown(e) && !e.closest('.scroll') && box(e)[2] > window.innerWidth + 1; })
      .map(function (e) { return e.tagName + ' ' + e.className; }).slice(0, 5),
    rows: rows,
    cards: overlaps(Array.prototype.slice.call(document.querySelectorAll('.card, figure')).filter(shown)),
    tall: Array.prototype.slice.call(document.querySelectorAll('figure, .card')).filter(shown)
      .map(function (e) { return box(e)[3] - box(e)[1]; }).filter(function (h) { return h > 300; }),
    small: texts.map(function (e) { return [e.textContent.slice(0, 30), size(e)]; }).filter(function (t) { return t[1] < LEAST_TEXT; }).slice(0, 5),
    labels: [].concat.apply([], drawn.map(function (s) {
      return overlaps(texts.filter(function (t) { return t.ownerSVGElement === s; })); })).slice(0, 5),
    outside: texts.filter(function (t) { return t.ownerSVGElement && t.parentNode.classList.contains('box'); })
      .filter(function (t) { var a = box(t), b = box(t.parentNode.querySelector('rect')); return a[0] < b[0] || a[2] > b[2] + 1; })
      .map(function (t) { return t.textContent; }).slice(0, 5),
    faint: texts.map(function (e) {
      var style = getComputedStyle(e), a = light(e.ownerSVGElement ? style.fill : style.color), b = light(ground(e));
      return [e.textContent.slice(0, 30), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    }).filter(function (t) { return t[1] < LEAST_CONTRAST; }).slice(0, 5),
    dark: light(getComputedStyle(document.body).backgroundColor) < 0.1,
    texts: texts.length
  };
})()""".replace("LEAST_TEXT", str(LEAST_TEXT)).replace("LEAST_CONTRAST", str(LEAST_CONTRAST))


def declarations(page):
    """(property, value) of the page's style sheet, as it is written."""
    with open(page, encoding="utf-8") as file:
        sheet = re.search(r"<style>(.*?)</style>", file.read(), re.S).group(1)
    found = []
    for body in re.findall(r"\{([^{}]*)\}", sheet):
        found += [tuple(part.strip() for part in d.split(":", 1)) for d in body.split(";") if ":" in d]
    return found


def look(s, pages):
    """Checks pages, {name: path}. Without a browser it says so, and checks nothing."""
    if browser.find() is None:
        print("skipped: no browser, so that no page was looked at; scripts/install.sh installs Chromium")
        return
    with browser.Browser() as b:
        for name, path in pages.items():
            b.open(path, WIDTHS["desk"])
            wrong = [d for d in declarations(path) if not b.evaluate(f"CSS.supports({d[0]!r}, {d[1]!r})")]
            s.check(f"{name}: every declaration of the style sheet is CSS", not wrong, wrong)
            for place, width in WIDTHS.items():
                for dark in (False, True):
                    b.open(path, width, dark=dark)
                    check(s, f"{name} on a {place}, {'dark' if dark else 'light'}", b.evaluate(FACTS), place, dark)


def check(s, what, facts, place, dark):
    s.check(f"{what}: has text in its colours", facts["texts"] > 10 and facts["dark"] == dark, facts)
    s.check(f"{what}: nothing is beyond the window", facts["width"][0] <= facts["width"][1] and not facts["wide"],
            [facts["width"], facts["wide"]])
    beside = 3 if place == "desk" else 1
    s.check(f"{what}: cards are side by side", all(min(n, beside) <= row for n, row in facts["rows"]) and
            (not facts["rows"] or facts["rows"][0][1] >= min(facts["rows"][0][0], beside + 1)), facts["rows"])
    for key, says in (("cards", "no card covers another"), ("tall", "no card is higher than 300 pixels"),
                      ("small", f"no text is smaller than {LEAST_TEXT} pixels"), ("labels", "no label covers another"),
                      ("outside", "labels are within their boxes"), ("faint", "text stands out from its ground")):
        s.check(f"{what}: {says}", not facts[key], facts[key])
