// The page's style and its few scripts (zoom, colours, search), without which the page is complete.
#include "converter/report/page.h"

namespace sinter::convert {

const char kPageStyle[] = R"css(
:root { color-scheme: light dark; --ground: #f6f7f9; --card: #ffffff; --ink: #1b2430; --soft: #5b6776; --line: #dde2e9;
  --link: #1f66c2; --p8: #d3f0de; --p8e: #2b9a63; --p16: #d0e9f7; --p16e: #2583b8; --ph: #e8dcfa; --phe: #8656cf;
  --pf: #fde5c6; --pfe: #d07a1e; --pi: #e6e9ee; --pie: #8a95a5; --n0: #cfeed9; --n1: #e6f0c4; --n2: #fbeab0;
  --n3: #fbd0a6; --n4: #f7b0a8; --n0e: #2b9a63; --n1e: #86a32a; --n2e: #c39a16; --n3e: #d2701c; --n4e: #c93a2e;
  --bar: #5b86c9; --cut: #c93a2e; --keep: rgba(43,154,99,.15); --mark: #fff3c4; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181e; --card: #1c222b; --ink: #e4e9f0; --soft: #97a3b4;
  --line: #323b48; --link: #7db4ff; --p8: #1c4030; --p8e: #48b981; --p16: #173b50; --p16e: #4ca7da; --ph: #36284f;
  --phe: #a57fe6; --pf: #4a3417; --pfe: #e09a45; --pi: #2c343f; --pie: #7b8798; --n0: #1c4030; --n1: #384319;
  --n2: #4d4114; --n3: #55331a; --n4: #58241f; --n0e: #48b981; --n1e: #a5c24a; --n2e: #dfb53a; --n3e: #ea8f45;
  --n4e: #ef6a5e; --bar: #6f9be0; --cut: #ef6a5e; --keep: rgba(72,185,129,.18); --mark: #4d4114; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 56px; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.45 system-ui, "Segoe UI", Roboto,
  "DejaVu Sans", sans-serif; }
nav { position: sticky; top: 0; z-index: 2; background: var(--card); border-bottom: 1px solid var(--line);
  padding: 8px 24px; display: flex; gap: 4px 18px; flex-wrap: wrap; }
nav a { color: var(--soft); text-decoration: none; } nav a:hover { color: var(--link); }
main { max-width: 1240px; margin: 0 auto; padding: 4px 24px 60px; }
h1 { font-size: 25px; margin: 22px 0 4px; overflow-wrap: anywhere; } h2 { font-size: 19px; margin: 38px 0 8px; }
p { margin: 6px 0 12px; color: var(--soft); max-width: 86ch; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(172px, 1fr)); gap: 12px; margin: 16px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 11px 14px; min-width: 0; }
.card b { display: block; font-size: 21px; font-weight: 600; line-height: 1.25; overflow-wrap: anywhere; }
.card span { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
.scroll { overflow: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { text-align: left; padding: 5px 12px; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; position: sticky; top: 0; background: var(--card); }
tr:last-child td { border-bottom: 0; }
tr:target td { background: var(--mark); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.w { overflow-wrap: anywhere; min-width: 170px; }
.tall { max-height: 70vh; }
.chip { display: inline-block; min-width: 62px; padding: 0 7px; border-radius: 9px; text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.chip.p8, .key.p8 { background: var(--p8); } .chip.p16, .key.p16 { background: var(--p16); }
.chip.ph, .key.ph { background: var(--ph); } .chip.pf, .key.pf { background: var(--pf); }
.chip.pi, .key.pi { background: var(--pi); } .chip.t { text-align: left; min-width: 0; }
.n0 { background: var(--n0); } .n1 { background: var(--n1); } .n2 { background: var(--n2); }
.n3 { background: var(--n3); } .n4 { background: var(--n4); }
.keys { display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 13px; color: var(--soft); margin: 6px 0; }
.key { display: inline-block; width: 13px; height: 13px; border-radius: 3px; margin-right: 5px; vertical-align: -2px;
  border: 1px solid var(--line); }
.tools { display: flex; flex-wrap: wrap; gap: 6px; margin: 8px 0; }
button, input[type=search] { font: inherit; font-size: 13px; color: var(--ink); background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: 3px 11px; }
button:hover, button.on { border-color: var(--link); color: var(--link); }
svg { display: block; font-family: system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
svg text { fill: var(--ink); }
.view { max-height: 78vh; } .view svg { margin: 0 auto; }
.box rect { stroke-width: 1.3; fill: var(--pi); stroke: var(--pie); }
.box .op { font-size: 12.5px; font-weight: 600; } .box .name { font-size: 11px; fill: var(--soft); }
.box .db { font-size: 11px; text-anchor: end; }
.box.io rect { fill: var(--card); stroke: var(--soft); } .box.free rect { stroke-dasharray: 4 3; opacity: .65; }
.by-type .box.p8 rect { fill: var(--p8); stroke: var(--p8e); } .by-type .box.p16 rect { fill: var(--p16); stroke: var(--p16e); }
.by-type .box.ph rect { fill: var(--ph); stroke: var(--phe); } .by-type .box.pf rect { fill: var(--pf); stroke: var(--pfe); }
.by-type .box.cast rect { fill: var(--card); }
.by-noise .box.n0 rect { fill: var(--n0); stroke: var(--n0e); } .by-noise .box.n1 rect { fill: var(--n1); stroke: var(--n1e); }
.by-noise .box.n2 rect { fill: var(--n2); stroke: var(--n2e); } .by-noise .box.n3 rect { fill: var(--n3); stroke: var(--n3e); }
.by-noise .box.n4 rect { fill: var(--n4); stroke: var(--n4e); }
.by-noise .keys.types, .by-type .keys.noises { display: none; }
a:hover .box rect, .box:hover rect { stroke-width: 2.6; }
.wire { fill: none; stroke: var(--pie); stroke-width: 1.4; }
.wire.p8 { stroke: var(--p8e); } .wire.p16 { stroke: var(--p16e); } .wire.ph { stroke: var(--phe); } .wire.pf { stroke: var(--pfe); }
.wire:hover { stroke-width: 3.5; }
.memory { width: 100%; min-width: 1020px; height: auto; } .memory .scale { stroke: var(--line); fill: none; }
.memory .tick { font-size: 11.5px; fill: var(--soft); } .right { text-anchor: end; } .middle { text-anchor: middle; }
.live rect { fill: var(--pi); stroke: var(--pie); stroke-width: .8; } .labels text { font-size: 10.5px; pointer-events: none; }
.live.p8 rect { fill: var(--p8); stroke: var(--p8e); } .live.p16 rect { fill: var(--p16); stroke: var(--p16e); }
.live.ph rect { fill: var(--ph); stroke: var(--phe); } .live.pf rect { fill: var(--pf); stroke: var(--pfe); }
.live.work rect { stroke-dasharray: 3 2; } .live.alias rect { fill-opacity: .45; stroke-dasharray: 2 2; }
.peak rect { fill: currentColor; fill-opacity: .1; stroke: currentColor; stroke-dasharray: 4 3; }
.live:hover rect { stroke-width: 2.4; }
.graphs { display: grid; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)); gap: 12px; margin: 10px 0; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 8px 10px; min-width: 0; }
figcaption { font-size: 12.5px; } figcaption b { overflow-wrap: anywhere; } figcaption span { color: var(--soft); }
figure svg { width: 100%; height: auto; margin-top: 5px; }
.bars { fill: var(--bar); } .cutbars { fill: var(--cut); } .kept { fill: var(--keep); }
.base { stroke: var(--soft); } .graph text { font-size: 11px; fill: var(--soft); }
.level { display: inline-block; width: 74px; height: 9px; background: var(--pi); border-radius: 4px; margin-right: 7px;
  overflow: hidden; vertical-align: 0; }
.level i { display: block; height: 9px; background: var(--bar); }
summary { cursor: pointer; color: var(--link); margin: 8px 0; }
.findings { padding-left: 20px; } .findings li { margin: 3px 0; overflow-wrap: anywhere; }
@media (max-width: 640px) { main { padding: 4px 12px 40px; } nav { padding: 8px 12px; position: static; }
  h1 { font-size: 21px; }
  th, td { padding: 4px 7px; } }
@media print { nav, .tools { display: none; } .scroll, .view, .tall { max-height: none; overflow: visible; } }
)css";

// The script has no less-than sign or ampersand, because the page is XML, too.
const char kPageScript[] = R"js(
(function () {
  var net = document.getElementById('network'), svg = document.getElementById('network-svg');
  function on(id, act) { var e = document.getElementById(id); if (e) e.addEventListener('click', act); }
  if (svg) {
    var view = svg.parentNode, w = +svg.getAttribute('width'), h = +svg.getAttribute('height'), zoom = 1;
    function show(z) {
      var x = (view.scrollLeft + view.clientWidth / 2) / zoom, y = (view.scrollTop + view.clientHeight / 2) / zoom;
      zoom = Math.max(0.02, Math.min(4, z));
      svg.setAttribute('width', w * zoom); svg.setAttribute('height', h * zoom);
      view.scrollLeft = x * zoom - view.clientWidth / 2; view.scrollTop = y * zoom - view.clientHeight / 2;
    }
    on('zoom-in', function () { show(zoom * 1.3); });
    on('zoom-out', function () { show(zoom / 1.3); });
    on('zoom-one', function () { show(1); });
    on('zoom-fit', function () { show(Math.min(view.clientWidth / w, window.innerHeight * 0.78 / h, 1)); });
    if (w > view.clientWidth) { show(Math.max(0.85, view.clientWidth / w)); view.scrollTop = 0; view.scrollLeft = svg.getAttribute('data-start') * zoom - view.clientWidth / 2; }
    ['type', 'noise'].forEach(function (by) {
      on('by-' + by, function () {
        net.className = 'by-' + by;
        ['type', 'noise'].forEach(function (b) {
          var e = document.getElementById('by-' + b); if (e) e.className = b === by ? 'on' : '';
        });
      });
    });
    var held = null;
    view.addEventListener('mousedown', function (e) { if (e.button === 0) held = [e.clientX, e.clientY, view.scrollLeft, view.scrollTop]; });
    window.addEventListener('mouseup', function () { held = null; });
    window.addEventListener('mousemove', function (e) {
      if (!held) return;
      view.scrollLeft = held[2] - e.clientX + held[0]; view.scrollTop = held[3] - e.clientY + held[1];
      e.preventDefault();
    });
  }
  Array.prototype.forEach.call(document.querySelectorAll('input[type=search]'), function (field) {
    var rows = document.querySelectorAll('#' + field.getAttribute('data-rows') + ' tbody tr');
    field.addEventListener('input', function () {
      var wanted = field.value.toLowerCase();
      Array.prototype.forEach.call(rows, function (row) {
        row.style.display = row.textContent.toLowerCase().indexOf(wanted) === -1 ? 'none' : '';
      });
    });
  });
})();
)js";

}  // namespace sinter::convert
