/** The style of the plain pages. System fonts and system colours, so that nothing is loaded and contrast follows the system. */
export const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, CanvasText 25%, Canvas); --accent: light-dark(#0b5cad, #7ab8ff); }
* { box-sizing: border-box; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText; overflow-wrap: anywhere; }
header { padding: 0.75rem 1rem; border-bottom: 1px solid var(--line); font-weight: 600; }
header a { color: inherit; text-decoration: none; }
main { max-width: 40rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
a { color: var(--accent); }
label { display: block; margin: 0.75rem 0 0.25rem; font-weight: 600; }
input, select, textarea { width: 100%; padding: 0.6rem; font: inherit; border: 1px solid var(--line); border-radius: 0.4rem; background: Field; color: FieldText; }
input[type="checkbox"], input[type="radio"] { width: auto; margin-right: 0.5rem; }
button { margin: 1rem 0.5rem 0 0; padding: 0.6rem 1.1rem; font: inherit; font-weight: 600; border: 1px solid var(--accent); border-radius: 0.4rem; background: var(--accent); color: Canvas; cursor: pointer; }
button.quiet { background: transparent; color: var(--accent); margin-top: 0; padding: 0.3rem 0.7rem; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1rem; }
dt { font-weight: 600; }
dd { margin: 0; }
code { font-family: ui-monospace, monospace; }
ul.rows { list-style: none; padding: 0; }
ul.rows li { padding: 0.6rem 0; border-top: 1px solid var(--line); }
.problem { padding: 0.6rem 0.8rem; border-left: 4px solid light-dark(#b00020, #ff8a94); }
.note { color: color-mix(in srgb, CanvasText 75%, Canvas); }
`;
