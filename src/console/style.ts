/** The style of every page. System fonts, one accent, light and dark from one set of names; nothing is loaded. */
export const STYLE = `
:root { color-scheme: light dark;
  --bg: light-dark(#f6f7f9, #0d1117); --panel: light-dark(#fff, #151b23); --sunk: light-dark(#f0f2f5, #0d1117);
  --text: light-dark(#17202b, #e6ebf1); --muted: light-dark(#556070, #9ba7b6); --line: light-dark(#dde2e8, #2b333e);
  --accent: light-dark(#0a6470, #62ccd8); --on-accent: light-dark(#fff, #06282c); --tint: light-dark(#e3f2f3, #12303a);
  --ok: light-dark(#13733f, #4fc88b); --ok-bg: light-dark(#e2f4e9, #12301f); --warn: light-dark(#7d5200, #e6b450); --warn-bg: light-dark(#fbf0d9, #33270d);
  --bad: light-dark(#b0231c, #ff938a); --bad-bg: light-dark(#fce8e6, #3a1614); --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
* { box-sizing: border-box; }
body { margin: 0; font: 0.9375rem/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; background: var(--bg); color: var(--text); overflow-wrap: break-word; }
a { color: var(--accent); text-underline-offset: 0.15em; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 0.25rem; }
.skip { position: absolute; left: -999rem; } .skip:focus { left: 1rem; top: 0.5rem; background: var(--panel); padding: 0.5rem; z-index: 2; }
.top { background: var(--panel); border-bottom: 1px solid var(--line); }
.top > div { max-width: 66rem; margin: 0 auto; padding: 0 1.25rem; display: flex; flex-wrap: wrap; align-items: center; gap: 0 1.5rem; }
.brand { font-weight: 700; font-size: 1.0625rem; letter-spacing: -0.01em; color: inherit; text-decoration: none; padding: 0.9rem 0; display: flex; gap: 0.55rem; align-items: center; }
.brand svg { width: 1.35rem; height: 1.35rem; color: var(--accent); }
.top nav { display: flex; gap: 0.25rem; overflow-x: auto; flex: 1; }
.top nav a { color: var(--muted); text-decoration: none; padding: 0.95rem 0.65rem 0.8rem; border-bottom: 0.15rem solid transparent; white-space: nowrap; font-weight: 500; }
.top nav a:hover { color: var(--text); } .top nav a[aria-current] { color: var(--text); border-color: var(--accent); }
.who { color: var(--muted); font-size: 0.875rem; }
main { max-width: 34rem; margin: 0 auto; padding: 1.75rem 1.25rem 4rem; } main.wide { max-width: 66rem; }
h1 { font-size: 1.625rem; line-height: 1.25; letter-spacing: -0.02em; margin: 0 0 1rem; font-weight: 680; }
h2 { font-size: 1.0625rem; letter-spacing: -0.01em; margin: 0 0 0.75rem; font-weight: 640; } main > h2 { margin-top: 2rem; } #live-none:last-child { margin: 0; } #live-none:not([hidden]) + ul:empty { display: none; }
h3 { font-size: 0.9375rem; margin: 0; font-weight: 600; }
p { margin: 0 0 0.9rem; max-width: 46rem; } .note, .muted { color: var(--muted); } .note, small { font-size: 0.875rem; }
.crumb { margin: 0 0 0.35rem; font-size: 0.875rem; } .crumb a { text-decoration: none; }
.head { display: flex; flex-wrap: wrap; gap: 0.75rem 1rem; align-items: center; justify-content: space-between; margin-bottom: 1.25rem; } .head h1 { margin: 0; display: flex; flex-wrap: wrap; gap: 0.75rem; align-items: center; }
.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 0.75rem; padding: 1.25rem; margin: 0 0 1.25rem; } .card > :last-child { margin-bottom: 0; }
.card > header { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; justify-content: space-between; align-items: baseline; margin-bottom: 0.75rem; } .card > header h2 { margin: 0; }
.grid { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fill, minmax(min(19rem, 100%), 1fr)); margin: 0 0 1.25rem; padding: 0; list-style: none; } .grid > .card, .grid > li > .card { margin: 0; height: 100%; }
.pair { display: grid; gap: 0 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); align-items: start; } .pair > * { min-width: 0; } .card > p.note:last-child, .rows p.note { margin-bottom: 0; } .rows p.note + .actions { margin-top: 0.6rem; }
.beside { display: flex; gap: 0.5rem; align-items: center; } .beside > button { margin: 0; flex: none; } label + .beside + .note { margin: 0.4rem 0 0.9rem; }
form.card { max-width: 44rem; } form.card > fieldset:first-of-type, form.card > label:first-of-type { margin-top: 0; } form.filters { max-width: none; }
.device h2 { margin: 0; font-size: 1.125rem; } .device h2 a { color: inherit; text-decoration: none; } .device h2 a:hover { text-decoration: underline; }
.badge { display: inline-flex; align-items: center; gap: 0.4rem; padding: 0.1rem 0.6rem; border-radius: 1rem; font-size: 0.8125rem; font-weight: 600; background: var(--sunk); color: var(--muted); white-space: nowrap; letter-spacing: 0; }
.badge::before { content: ""; width: 0.5rem; height: 0.5rem; border-radius: 50%; background: currentColor; }
.badge.plain::before { display: none; }
.badge.ok { background: var(--ok-bg); color: var(--ok); } .badge.warn { background: var(--warn-bg); color: var(--warn); } .badge.bad { background: var(--bad-bg); color: var(--bad); } .badge.new { background: var(--tint); color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1.25rem; margin: 0 0 0.9rem; } dt { color: var(--muted); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.ages { grid-template-columns: 1fr auto; margin: 0; padding-top: 0.75rem; border-top: 1px solid var(--line); font-size: 0.875rem; } .ages dd { text-align: right; font-variant-numeric: tabular-nums; }
.stats { display: flex; flex-wrap: wrap; gap: 1.25rem 2.5rem; margin: 0; } .stats > div { display: flex; flex-direction: column-reverse; } .stats dd { font-size: 1.25rem; font-weight: 640; letter-spacing: -0.01em; line-height: 1.3; } .stats dt { font-size: 0.8125rem; }
label, legend { font-weight: 600; } label { display: block; margin: 1rem 0 0.3rem; } label.box { font-weight: 400; display: flex; gap: 0.6rem; margin: 0.35rem 0; align-items: baseline; } label.box > span { min-width: 0; overflow-wrap: anywhere; }
fieldset { border: 0; padding: 0; margin: 1.25rem 0 0; min-width: 0; } legend { padding: 0; margin-bottom: 0.4rem; }
input, select, textarea { width: 100%; padding: 0.55rem 0.7rem; font: inherit; border: 1px solid light-dark(#8b95a3, #5c6875); border-radius: 0.5rem; background: var(--panel); color: var(--text); }
input[type="checkbox"], input[type="radio"] { width: 1rem; height: 1rem; flex: none; margin: 0; accent-color: var(--accent); position: relative; top: 0.15rem; padding: 0; }
textarea { font-family: var(--mono); font-size: 0.8125rem; min-height: 5rem; }
button, .button { display: inline-block; padding: 0.5rem 1rem; font: inherit; font-weight: 600; line-height: 1.4; border: 1px solid var(--accent); border-radius: 0.5rem; background: var(--accent); color: var(--on-accent); cursor: pointer; text-decoration: none; }
button:hover, .button:hover { filter: brightness(1.08); } form > button { margin-top: 1.25rem; margin-right: 0.5rem; } form.actions > button { margin: 0; }
.quiet { background: transparent; color: var(--accent); border-color: var(--line); } .small { padding: 0.2rem 0.65rem; font-size: 0.8125rem; } .danger { background: var(--bad); border-color: var(--bad); color: light-dark(#fff, #2b0806); } .quiet.danger { background: transparent; color: var(--bad); border-color: var(--line); }
form.inline { display: inline; } form.inline > button { margin: 0; }
.filters { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0 1rem; align-items: end; } .filters label { margin-top: 0; font-size: 0.8125rem; } .filters .actions { padding-top: 0.75rem; }
code, pre { font-family: var(--mono); font-size: 0.8125rem; } code { overflow-wrap: anywhere; }
pre { background: var(--sunk); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.75rem 0.9rem; margin: 0 0 0.9rem; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30rem; overflow: auto; }
.copyable { position: relative; } .copyable pre { padding-right: 4.5rem; } .copyable button { position: absolute; top: 0.4rem; right: 0.4rem; margin: 0; background: var(--panel); }
ul.rows { list-style: none; padding: 0; margin: 0; } ul.rows > li { padding: 0.75rem 0; border-top: 1px solid var(--line); } ul.rows > li:first-child { border-top: 0; padding-top: 0; } ul.rows > li:last-child { padding-bottom: 0; } .split { display: flex; flex-wrap: wrap; gap: 0.4rem 1rem; justify-content: space-between; align-items: center; } .split > :first-child { flex: 1 1 14rem; min-width: 0; }
ul.tools { max-height: 22rem; overflow: auto; border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.6rem 0.9rem; } ul.tools > li { padding: 0.3rem 0; border: 0; } ul.tools label.box { margin: 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 0.875rem; font-variant-numeric: tabular-nums; } th { text-align: left; font-weight: 600; color: var(--muted); font-size: 0.8125rem; } th, td { padding: 0.5rem 0.75rem 0.5rem 0; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap; } td.wrap { white-space: normal; min-width: 10rem; overflow-wrap: anywhere; } td.num, th.num { text-align: right; } tbody tr:last-child td { border-bottom: 0; }
form + .note, form > button + .note { margin-top: 0.9rem; } details.card > summary { padding: 0; }
main:not(.wide) > form:not(.inline) { background: var(--panel); border: 1px solid var(--line); border-radius: 0.75rem; padding: 1.25rem; } main:not(.wide) > form > label:first-of-type { margin-top: 0; } main:not(.wide) > form > :last-child { margin-bottom: 0; } p.card { max-width: none; }
.problem, .done { padding: 0.7rem 1rem; border-radius: 0.5rem; margin: 0 0 1.25rem; max-width: none; } .problem { background: var(--bad-bg); color: var(--bad); } .done { background: var(--ok-bg); color: var(--ok); } .warning { padding: 0.7rem 1rem; border-radius: 0.5rem; background: var(--warn-bg); color: var(--warn); margin: 0 0 1.25rem; }
details > summary { cursor: pointer; font-weight: 600; padding: 0.35rem 0; } details[open] > summary { margin-bottom: 0.5rem; } details.entry { border-top: 1px solid var(--line); padding: 0.35rem 0; } details.entry > summary { display: flex; flex-wrap: wrap; gap: 0.25rem 0.75rem; align-items: center; } details.entry > summary::before { content: "›"; color: var(--muted); } details.entry[open] > summary::before { content: "⌄"; }
ol.steps { list-style: none; counter-reset: step; padding: 0; margin: 0; } ol.steps > li { counter-increment: step; position: relative; padding: 0 0 1.25rem 2.75rem; } ol.steps > li::before { content: counter(step); position: absolute; left: 0; top: -0.1rem; width: 1.75rem; height: 1.75rem; border-radius: 50%; background: var(--tint); color: var(--accent); font-weight: 700; display: grid; place-items: center; font-size: 0.875rem; } ol.steps > li:last-child { padding-bottom: 0; }
progress { width: 100%; height: 0.4rem; accent-color: var(--accent); } [hidden] { display: none !important; }
.plot { width: 100%; height: auto; display: block; overflow: visible; } .plot text { fill: var(--muted); font: 11px system-ui, sans-serif; } .plot .grid-line { stroke: var(--line); } .plot .calls { fill: var(--accent); } .plot .errors { fill: var(--bad); } .plot .p50 { stroke: var(--accent); } .plot .p95 { stroke: var(--warn); stroke-dasharray: 5 3; } .plot path, .plot line { fill: none; stroke-width: 2; } .plot .grid-line { stroke-width: 1; } .plot circle.p50 { fill: var(--accent); } .plot circle.p95 { fill: var(--warn); stroke: none; }
.legend { display: flex; gap: 1.25rem; font-size: 0.8125rem; color: var(--muted); margin: 0 0 0.5rem; } .legend i { display: inline-block; width: 0.7rem; height: 0.7rem; border-radius: 0.2rem; margin-right: 0.4rem; vertical-align: -0.05rem; } .legend .calls, .legend .p50 { background: var(--accent); } .legend .errors { background: var(--bad); } .legend .p95 { background: var(--warn); }
img.result { max-width: 100%; border: 1px solid var(--line); border-radius: 0.5rem; background: repeating-conic-gradient(var(--sunk) 0 25%, var(--panel) 0 50%) 0 0 / 16px 16px; }
@media (max-width: 40rem) { .plot { min-width: 32rem; } main { padding: 1.25rem 1rem 3rem; } .top > div { padding: 0 1rem; gap: 0 1rem; } .top nav { order: 3; flex-basis: 100%; margin: 0 -0.65rem; } .brand { padding: 0.7rem 0 0.2rem; flex: 1; } .top nav a { padding-top: 0.5rem; } .who { padding-top: 0.5rem; } .card { padding: 1rem; } h1 { font-size: 1.375rem; } }
`;
