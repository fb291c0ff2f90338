"""The style sheet of the report: light, dark, phone and print, without a single outside resource.

Colour is never the only sign: outcomes carry an icon and a word, origins a word and a line that gets more solid the
stronger the origin is. Text on its ground reaches a contrast of 4.5 : 1 in both schemes (WCAG 2.2, 1.4.3 AA).
"""

from __future__ import annotations

from typing import Final

_COLOURS: Final = """
:root{color-scheme:light dark;
--paper:#fcfbf9;--card:#fff;--sunk:#f2f1ed;--ink:#1a1d21;--soft:#555d66;--line:#d9d7d0;--strong:#9aa0a6;--link:#0a58a3;
--good:#176b32;--good-bg:#e4f3e7;--bad:#b3261e;--bad-bg:#fce8e6;--open:#7a4d00;--open-bg:#fdf1d8;--none:#555d66;
--none-bg:#ecebe7;--virtual:#6a3fb0;--virtual-bg:#f2edfb;--focus:#0a58a3;
--c1:#2f6db3;--c2:#1d8a7d;--c3:#c9772a;--c4:#8b6bb8;--c5:#b5495b;--c6:#6f7f2f;--c7:#4d8fae;--c8:#a0674b;--c9:#3f4f8f;--c10:#a3457f;--c0:#8a929b;
--on-c:#fff;--free:#fff}
@media (prefers-color-scheme:dark){:root{
--paper:#14171a;--card:#1b1f23;--sunk:#22272c;--ink:#e6e8ea;--soft:#a8b0b8;--line:#363c43;--strong:#7a838c;--link:#7db8f2;
--good:#7ed394;--good-bg:#17301e;--bad:#ff9d94;--bad-bg:#3b1b19;--open:#f0c068;--open-bg:#352a12;--none:#a8b0b8;
--none-bg:#2a2f35;--virtual:#c4a6f5;--virtual-bg:#261f36;--focus:#7db8f2;
--c1:#5b96d8;--c2:#3fae9f;--c3:#dd9450;--c4:#a98cd6;--c5:#d9707f;--c6:#9bab55;--c7:#74b4d2;--c8:#c58f74;--c9:#8693d8;--c10:#d780b6;--c0:#7d858e;
--on-c:#0d0f11;--free:#22272c}}
"""

_BASE: Final = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans","DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:break-word}
a{color:var(--link);text-underline-offset:.15em}
:focus-visible{outline:2px solid var(--focus);outline-offset:2px}
code,pre,.mono{font:.92em/1.45 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;
overflow-wrap:anywhere}
td .mono,th .mono{overflow-wrap:break-word}
pre{margin:0;white-space:pre-wrap}
code.run{background:var(--sunk);border-radius:4px;padding:.1em .4em;-webkit-user-select:all;user-select:all}
h1,h2,h3,h4{line-height:1.25;margin:0;text-wrap:balance}
h1{font-size:1.9rem;letter-spacing:-.01em}h2{font-size:1.3rem}h3{font-size:1.05rem}h4{font-size:.95rem}
p,ul,ol,dl{margin:.5rem 0}
ul,ol{padding-left:1.3rem}
.soft{color:var(--soft)}.small{font-size:.87rem}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:1rem;background:var(--card);padding:.5rem;z-index:9}
.hidden-text{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.frame{max-width:1080px;margin:0 auto;padding:1.5rem 1.25rem 4rem}
main>section{margin-top:2.6rem}
main>section>h2{border-top:3px solid var(--ink);padding-top:.5rem}
main>section>h2 .count{font-weight:400;color:var(--soft);font-size:1rem;margin-left:.4rem}
section h3{margin-top:1.6rem}section h4{margin-top:1.2rem}
nav.contents ul{list-style:none;margin:1rem 0 0;padding:0;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;
font-size:.92rem}
nav.contents a{text-decoration:none}nav.contents a:hover{text-decoration:underline}
@media (min-width:1340px){
.frame{max-width:1300px;display:grid;grid-template-columns:180px minmax(0,1fr);gap:0 2.5rem;
grid-template-areas:"top top" "toc main" "toc foot"}
header.top{grid-area:top}nav.contents{grid-area:toc}main{grid-area:main}footer{grid-area:foot}
nav.contents ul{position:sticky;top:1.5rem;margin-top:3.2rem;flex-direction:column;gap:.35rem}}
"""

_TOP: Final = """
header.top .eyebrow{display:flex;justify-content:space-between;gap:1rem;flex-wrap:wrap;color:var(--soft);
font-size:.87rem;border-bottom:1px solid var(--line);padding-bottom:.5rem;margin-bottom:1.1rem}
header.top .eyebrow b{color:var(--ink);letter-spacing:.02em}
.sentence{font-size:1.22rem;line-height:1.45;max-width:60rem;margin:.6rem 0 1rem;text-wrap:pretty}
.exit{display:inline-block;border:1px solid currentColor;border-radius:4px;padding:.05em .5em;font-weight:600;
font-size:.92rem;margin-right:.5rem}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:.6rem 1.5rem;margin:1.2rem 0 0;
font-size:.92rem}
.facts dt{color:var(--soft);font-size:.82rem}.facts .long{grid-column:span 2}.facts>div{min-width:0}
.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:.75rem;margin:1.2rem 0 0;padding:0;
list-style:none}
.tile{background:var(--card);border:1px solid var(--line);border-top:4px solid var(--strong);border-radius:4px;
padding:.6rem .8rem .7rem}
.tile b{display:block;font-size:1.55rem;line-height:1.2}.tile span{display:block;color:var(--soft);font-size:.87rem}
.tile .name{color:var(--ink);font-weight:600;font-size:.92rem}
.tile.good{border-top-color:var(--good)}.tile.bad{border-top-color:var(--bad)}.tile.open{border-top-color:var(--open)}
.tile.virtual{border-top-color:var(--virtual)}
"""

_WORDS: Final = """
.outcome{display:inline-flex;align-items:baseline;gap:.35em;font-weight:600;white-space:nowrap;border-radius:4px;
padding:.08em .5em;font-size:.9rem}
.outcome.good{color:var(--good);background:var(--good-bg)}.outcome.bad{color:var(--bad);background:var(--bad-bg)}
.outcome.open{color:var(--open);background:var(--open-bg)}.outcome.none{color:var(--none);background:var(--none-bg)}
.outcome.virtual{color:var(--virtual);background:var(--virtual-bg)}
.origin{display:inline-block;font-size:.78rem;line-height:1.35;padding:0 .45em;border-radius:99px;white-space:nowrap;
border:1.5px solid var(--soft);color:var(--soft)}
.origin.assumed{border-style:dashed;border-color:var(--open);color:var(--open);background:var(--open-bg)}
.origin.rehearsed{border-style:dotted;border-color:var(--virtual);color:var(--virtual)}
.origin.catalogue{border-width:1px}
.origin.declared{border-color:var(--ink);color:var(--ink)}
.origin.measured{border-color:var(--good);background:var(--good);color:var(--paper)}
"""

_PARTS: Final = """
.scroll{overflow-x:auto;margin:.8rem 0;max-width:100%}
table{border-collapse:collapse;width:100%;font-size:.92rem}
caption{text-align:left;color:var(--soft);font-size:.87rem;padding-bottom:.35rem}
th,td{text-align:left;vertical-align:top;padding:.45rem .7rem .45rem 0;border-bottom:1px solid var(--line)}
thead th{font-size:.82rem;color:var(--soft);font-weight:600;border-bottom:1px solid var(--strong);white-space:nowrap;
vertical-align:bottom}
tbody th{font-weight:600}
.num{text-align:right;white-space:nowrap}
tr.group th{background:var(--sunk);padding:.55rem .6rem;border-bottom:1px solid var(--strong)}
tr.group th .soft{font-weight:400}
.stack td p,.stack th p{margin:.15rem 0}
#claims{table-layout:fixed;min-width:820px}
.c-claim{width:15%}.c-asks{width:27%}.c-outcome{width:18%}.c-seen{width:15%}.c-next{width:25%}
.sign{display:none}
#claims td,#claims th{overflow-wrap:anywhere}
details>summary{cursor:pointer;list-style:none}
details>summary::-webkit-details-marker{display:none}
details>summary::before{content:"";display:inline-block;width:.42em;height:.42em;border-right:1.6px solid var(--soft);
border-bottom:1.6px solid var(--soft);transform:translateY(-.15em) rotate(-45deg);margin-right:.6em;flex:none}
details[open]>summary::before{transform:translateY(-.25em) rotate(45deg)}
@media (prefers-reduced-motion:no-preference){details>summary::before{transition:transform .12s}}
.fold{border:1px solid var(--line);border-radius:4px;background:var(--card);margin:.5rem 0}
.fold>summary{padding:.5rem .8rem;font-weight:600}.fold>summary .soft{font-weight:400}
.fold>*:not(summary){margin-left:.8rem;margin-right:.8rem}
.card{border:1px solid var(--line);border-radius:4px;background:var(--card);padding:.8rem 1rem;margin:.8rem 0}
ul.filters{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.4rem;margin:.8rem 0}
button{font:inherit;font-size:.9rem;color:var(--ink);background:var(--card);border:1px solid var(--strong);
border-radius:99px;padding:.2rem .8rem;cursor:pointer;min-height:2rem}
button[aria-pressed=true]{background:var(--ink);color:var(--paper);border-color:var(--ink)}
button:hover{border-color:var(--ink)}
[hidden]{display:none!important}
"""

_FIGURES: Final = """
.ledger{border-top:1px solid var(--line);margin:.6rem 0}
.ledger>details{border-bottom:1px solid var(--line)}
.ledger>details>summary{display:flex;align-items:baseline;gap:0 .6rem;padding:.36rem .2rem}
.ledger>details>summary::before{margin-right:0}
.ledger .name{flex:1 1 auto;min-width:0}
.ledger .value{font-weight:600;white-space:nowrap}
.ledger .origin{flex:none;min-width:5.4rem;text-align:center}
.ledger>details[open]>summary{background:var(--sunk)}
ul.tree{list-style:none;margin:.3rem 0 .8rem .7rem;padding:0;font-size:.88rem}
ul.tree ul{list-style:none;margin:0 0 0 .35rem;padding-left:.9rem;border-left:1px solid var(--line)}
ul.tree li{padding:.2rem 0}
ul.tree .formula{display:block;color:var(--soft)}
ul.tree b{font-weight:600;white-space:nowrap}
"""

_DRAWINGS: Final = """
figure{margin:1rem 0}
figure>svg{display:block;max-width:100%}
.timeline ol{padding-left:2.2rem}
figcaption{color:var(--soft);font-size:.87rem;margin-top:.4rem}
svg text{fill:var(--ink);font-family:inherit}
svg .t-soft{fill:var(--soft)}svg .t-on{fill:var(--on-c)}svg .t-bold{font-weight:600}
svg .s11{font-size:11px}svg .s12{font-size:12px}svg .s13{font-size:13px}svg .s10{font-size:10px}
svg .mid{text-anchor:middle}svg .end{text-anchor:end}
svg .box{fill:var(--card);stroke:var(--strong)}svg .sunk{fill:var(--sunk);stroke:var(--line)}
svg .domain{fill:none;stroke:var(--strong);stroke-dasharray:4 3}
svg .wire{stroke:var(--strong);fill:none}svg .axis{stroke:var(--strong)}
svg .tick{stroke:var(--line)}svg .ring{fill:none;stroke:var(--ink);stroke-width:2}
svg .gap{stroke:var(--paper);stroke-width:1}
svg .k0{fill:var(--c0)}svg .k1{fill:var(--c1)}svg .k2{fill:var(--c2)}svg .k3{fill:var(--c3)}svg .k4{fill:var(--c4)}
svg .k5{fill:var(--c5)}svg .k6{fill:var(--c6)}svg .k7{fill:var(--c7)}svg .k8{fill:var(--c8)}
svg .k9{fill:var(--c9)}svg .k10{fill:var(--c10)}
svg .curve{fill:none;stroke-linejoin:round}svg .l1{stroke:var(--c1)}svg .l2{stroke:var(--c2)}svg .l3{stroke:var(--c3)}
svg .l4{stroke:var(--c4)}svg .l5{stroke:var(--c5)}svg .l6{stroke:var(--c6)}svg .l7{stroke:var(--c7)}
svg .l8{stroke:var(--c8)}svg .l9{stroke:var(--c9)}svg .l10{stroke:var(--c10)}
svg .halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
svg .free{fill:var(--free);stroke:var(--strong)}
svg .limit{stroke:var(--bad);stroke-width:2;stroke-dasharray:5 3}
svg .w-compute{stroke:var(--c1)}svg .w-storage{stroke:var(--c3)}svg .w-in-band{stroke:var(--c2)}
svg .w-out-of-band{stroke:var(--c0)}svg .w-mixed{stroke:var(--c4)}
svg .f-compute{fill:var(--c1)}svg .f-storage{fill:var(--c3)}svg .f-in-band{fill:var(--c2)}
svg .f-out-of-band{fill:var(--c0)}svg .f-mixed{fill:var(--c4)}
svg .lost{fill:var(--bad)}svg .virtual{fill:var(--virtual)}svg .found{fill:var(--open)}svg .well{fill:var(--good)}
.narrow{display:none}
ul.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;margin:.5rem 0;font-size:.88rem}
ul.legend svg{width:12px;height:12px;vertical-align:-1px;margin-right:.4em}
ul.legend svg.sample{width:28px}
.bars{display:grid;gap:.2rem;margin:.8rem 0}
.bars .label{display:flex;justify-content:space-between;gap:0 1rem;flex-wrap:wrap;font-size:.92rem;margin-top:.5rem}
.bars .label>span:last-child{margin-left:auto;text-align:right}
.bars>svg,.line>svg{width:100%;display:block;overflow:visible}
ol.chain{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.5rem 0;margin:.8rem 0}
ol.chain li{display:flex;align-items:center}
ol.chain .stop{border:1px solid var(--strong);border-radius:4px;background:var(--card);padding:.35rem .7rem;
font-size:.92rem}
ol.chain .stop b{display:block}
ol.chain li+li::before{content:"→";padding:0 .5rem;color:var(--soft)}
ol.chain .binding{border:2px solid var(--open);background:var(--open-bg)}
ul.legend b{font-weight:600;white-space:nowrap}
ol.chain .binding em{font-style:normal;font-weight:600;color:var(--open)}
"""

_VIRTUAL: Final = """
section.virtual{border:2px solid var(--virtual);border-radius:6px;padding:0 1.1rem 1rem;overflow:hidden}
main>section.virtual>h2{border:0}
section.virtual .band{display:block;margin:0 -1.1rem 1rem;padding:.3rem 1.1rem;font-weight:700;letter-spacing:.08em;
font-size:.87rem;color:var(--virtual);background:repeating-linear-gradient(-45deg,var(--virtual-bg) 0 10px,
transparent 10px 20px);border-bottom:1px solid var(--virtual)}
section.virtual .band span{background:var(--card);padding:.05rem .5rem;border-radius:3px}
.finding{border-left:4px solid var(--strong);padding:.1rem 0 .2rem .9rem;margin:1rem 0}
.finding.error{border-color:var(--bad)}.finding.warning{border-color:var(--open)}
.finding p{margin:.2rem 0}.finding h3,.finding h4{margin:0;line-height:1.5;text-wrap:wrap}
.finding .meta{color:var(--soft);font-size:.87rem}
.finding .source{display:block;background:var(--sunk);border-radius:4px;padding:.3rem .6rem;margin:.3rem 0;
white-space:pre-wrap}
ol.steps{list-style:none;padding:0}
ol.steps li{display:grid;grid-template-columns:8.2rem minmax(0,1fr) auto;gap:.1rem .9rem;padding:.4rem 0;
border-bottom:1px solid var(--line);align-items:baseline}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.8rem;color:var(--soft);font-size:.87rem}
"""

_PHONE: Final = """
@media (max-width:700px){
body{font-size:16px}h1{font-size:1.5rem}.sentence{font-size:1.1rem}
.frame{padding:1rem 1rem 3rem}
.wide{display:none}.narrow{display:block}ul.tree b{white-space:normal}
.facts{grid-template-columns:repeat(2,minmax(0,1fr))}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}
ol.steps li{grid-template-columns:auto 1fr}
ol.steps .reason{grid-column:1/-1;grid-row:2}
ol.steps li>:last-child{grid-row:1;grid-column:2;text-align:right}
.stack thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.stack table,.stack tbody,.stack tr,.stack td,.stack th,.stack caption{display:block;text-align:left}
.stack tr{border-bottom:1px solid var(--strong);padding:.6rem 0}
.stack tr.group{padding:0}
.stack td,.stack tbody th{border:0;padding:.12rem 0;white-space:normal}
.stack td[data-label]::before{content:attr(data-label) ": ";color:var(--soft);font-size:.82rem}
.stack td[data-label]>p:first-child{display:inline}
.bars .label{gap:0 1rem}
.stack td:empty,.stack col{display:none}
#claims{min-width:0}
.ledger>details>summary{flex-wrap:wrap}
.ledger .name{flex-basis:calc(100% - 2rem)}
.ledger .value{margin-left:1.1rem}
ol.chain{flex-direction:column}
ol.chain li{flex-direction:column;align-items:stretch}
ol.chain li+li::before{content:"↓";text-align:center}
summary{min-height:2.2rem}}
"""

_PRINT: Final = """
@media print{
@page{margin:14mm 12mm}
:root{color-scheme:light;--paper:#fff;--card:#fff;--sunk:#f2f1ed;--ink:#000;--soft:#444;--line:#ccc;--strong:#888;
--link:#000;--good:#176b32;--good-bg:#fff;--bad:#b3261e;--bad-bg:#fff;--open:#7a4d00;--open-bg:#fff;--none:#444;
--none-bg:#fff;--virtual:#6a3fb0;--virtual-bg:#eee;--on-c:#fff;--free:#fff;
--c1:#2f6db3;--c2:#1d8a7d;--c3:#c9772a;--c4:#8b6bb8;--c5:#b5495b;--c6:#6f7f2f;--c7:#4d8fae;--c8:#a0674b;--c9:#3f4f8f;--c10:#a3457f;
--c0:#8a929b}
body{font-size:10pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}
.frame{display:block;max-width:none;padding:0}
nav.contents,ul.filters,.skip{display:none}
.wide{display:block}.narrow{display:none}
details::details-content{content-visibility:visible;display:block;height:auto}
details>summary::before{display:none}
.outcome{border:1px solid currentColor}
tr,.finding,.card,.tile,figure,.bars{break-inside:avoid}
h2,h3,h4{break-after:avoid}
thead{display:table-header-group}
caption,thead,tr.group{break-after:avoid}
.sign{display:block;border-top:1px solid var(--ink);margin-top:16mm;width:90mm;padding-top:1mm}
.stack td .outcome{white-space:normal}
tr[data-filtered]{display:table-row!important}tbody[data-filtered]{display:table-row-group!important}
.scroll{overflow:visible}
a{text-decoration:none}}
"""

STYLE: Final = "".join((_COLOURS, _BASE, _TOP, _WORDS, _PARTS, _FIGURES, _DRAWINGS, _VIRTUAL, _PHONE, _PRINT))

#: Shows only the rows of the pressed outcomes, and unfolds everything before printing where the browser does not.
SCRIPT: Final = """
"use strict";
for (const bar of document.querySelectorAll("[data-filters]")) {
  const rows = document.querySelectorAll(bar.dataset.filters + " tr[data-outcome]");
  const groups = document.querySelectorAll(bar.dataset.filters + " tbody");
  const said = document.getElementById(bar.dataset.says);
  const buttons = bar.querySelectorAll("button");
  bar.hidden = false;
  bar.addEventListener("click", (event) => {
    const pressed = event.target.closest("button");
    if (!pressed) return;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === pressed));
    const wanted = pressed.value;
    let shown = 0;
    for (const row of rows) {
      const on = !wanted || row.dataset.outcome === wanted;
      row.toggleAttribute("data-filtered", !on);
      row.hidden = !on;
      if (on) shown += 1;
    }
    for (const group of groups) {
      const left = group.querySelector("tr[data-outcome]:not([hidden])");
      group.toggleAttribute("data-filtered", !left);
      group.hidden = !left;
    }
    said.textContent = shown + " of " + rows.length + " claims shown";
  });
}
const opened = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; opened.push(part); }
});
addEventListener("afterprint", () => { for (const part of opened.splice(0)) part.open = false; });
"""
