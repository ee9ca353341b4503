// A chart in the colours of the page.
//
// It is a canvas, which neither a keyboard nor a screen reader sees into: a page has the same figures as text beside it. It is given whole
// units, so its floats hold integers and nothing is rounded.

/** A colour of the page. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Seconds since 1970 by this machine's clock, as the library wants them. */
export const secondsOf = (ms) => Math.floor(ms / 1000) - new Date(ms).getTimezoneOffset() * 60;

/**
 * A chart in `box`, once the library is there; null if the box is gone by then. `words` writes a price in units; `options` are the library's own;
 * `paint(chart, library)` gives series their colours, now and when the system's scheme changes.
 */
export async function plot(box, { words, options = {}, series, paint }) {
  const library = await import('../vendor/lightweight-charts.js');
  if (!box.isConnected) return null;
  const formatter = (units) => words(BigInt(Math.round(units)));
  const chart = library.createChart(box, {
    autoSize: true,
    layout: { attributionLogo: false, fontFamily: 'inherit' },
    localization: { priceFormatter: formatter },
    handleScroll: { vertTouchDrag: false },
    ...options,
  });
  const made = series(chart, library, { type: 'custom', minMove: 1, formatter });
  const draw = () => { paintAxes(chart); paint(made); };
  draw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  return { chart, series: made };
}

function paintAxes(chart) {
  chart.applyOptions({
    layout: { background: { color: colour('--card') }, textColor: colour('--muted') },
    grid: { vertLines: { color: colour('--line') }, horzLines: { color: colour('--line') } },
    rightPriceScale: { borderColor: colour('--line') }, timeScale: { borderColor: colour('--line') },
  });
}
