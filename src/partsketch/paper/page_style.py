"""The style sheet of the page: a narrow layout for telephones, a wide one for desks, a plain one for paper."""

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; }
main { max-width: 1120px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; border-top: 1px solid #ddd; padding-top: 1rem; }
h3 { font-size: 1rem; }
a { color: #005a8d; }
nav ul { columns: 22rem; padding-left: 1.2rem; }
figure { margin: 0; }
figure img { display: block; width: 100%; height: auto; }
figcaption { color: #444; font-size: 0.9rem; margin-top: 0.5rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.6rem; border-bottom: 1px solid #e3e3e3; }
th { border-bottom: 2px solid #999; }
.scroll { overflow-x: auto; }
.claims td { overflow-wrap: anywhere; }
.claims td:nth-child(1) { width: 20%; }
.claims td:nth-child(2) { width: 27%; }
.claims td:nth-child(3) { width: 14%; }
.claims td:nth-child(4) { width: 16%; }
.verdict { font-weight: 600; }
.holds .verdict::before { content: "\\2713\\00a0"; }
.partly .verdict::before { content: "\\25d0\\00a0"; }
.fails .verdict::before { content: "\\2717\\00a0"; }
.unknown .verdict::before { content: "?\\00a0"; }
.holds .verdict { color: #00603f; }
.partly .verdict { color: #7a4a00; }
.fails .verdict { color: #9b2c00; }
.unknown .verdict { color: #666; }
.problems { border-left: 4px solid #d55e00; padding-left: 1rem; }
@media (max-width: 640px) {
  body { font-size: 15px; }
  .claims thead { display: none; }
  .claims tr { display: block; border: 1px solid #ccc; border-radius: 6px; margin-bottom: 0.8rem; padding: 0.3rem; }
  .claims td, .claims td:nth-child(n) { display: block; width: auto; border: 0; padding: 0.2rem 0.5rem; }
  .claims td::before { content: attr(data-label) ": "; color: #666; font-size: 0.8rem; }
}
@media print {
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  a { color: inherit; text-decoration: none; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
}
"""
