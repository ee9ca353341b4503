// The price of the stock in hand as a line, its triggers as lines across, and the same figures as a table.
// New prices are drawn once a frame, however many came.

import * as api from './api.js';
import { card, el, refill, setText, table, timeText } from './dom.js';
import { centsOf, dollars, dollarsOf } from './money.js';
import { colour, plot, secondsOf } from './plot.js';
import { state } from './state.js';
import { triggerOf } from './triggers.js';

/** Rows of the table: the newest prices. */
const ROWS = 8;

/** The chart and its table. */
export function chartCard(hear) {
  const box = el('div', { class: 'chart', role: 'img' });
  const body = el('div', { class: 'beside' });
  const made = card('Price', 'chart-card', el('div', { class: 'chart-and-table' }, box, body));
  const drawn = { symbol: null, points: [], chart: null, series: null, lines: [] };
  const title = () => setText(made.querySelector('h2'), state.symbol ? `Price of ${state.symbol}` : 'Price');
  const tableAnew = () => refill(body, priceTable(drawn));
  hear('symbol', () => { title(); fill(drawn, box).then(tableAnew); });
  hear('quotes', () => drawNew(drawn));
  hear('account', () => drawLines(drawn));
  hear('second', () => { tell(drawn, box); tableAnew(); });
  hear('leave', () => drawn.chart?.remove());
  title();
  tableAnew();
  begin(drawn, box).then(() => fill(drawn, box)).then(tableAnew);
  return made;
}

async function begin(drawn, box) {
  const made = await plot(box, {
    words: dollars,
    options: { timeScale: { timeVisible: true, secondsVisible: true, rightOffset: 3, maxBarSpacing: 14 } },
    series: (chart, library, priceFormat) => chart.addSeries(library.AreaSeries, {
      priceFormat, lineWidth: 2, priceLineVisible: false, autoscaleInfoProvider: (of) => withTriggers(of()),
    }),
    paint: (series) => {
      series.applyOptions({ lineColor: colour('--accent'), topColor: colour('--accent-faint'), bottomColor: 'transparent' });
      drawLines(drawn);
    },
  });
  Object.assign(drawn, made);
}

const armed = () => ['buy', 'sell'].map((way) => [way, triggerOf(way, state.symbol)?.price]).filter(([, price]) => price);

// A trigger that is far away makes the scale larger: it is what one looks at the chart for.
function withTriggers(info) {
  const prices = armed().map(([, price]) => Number(centsOf(price)));
  if (!info || prices.length === 0) return info;
  const { minValue, maxValue } = info.priceRange;
  return { ...info, priceRange: { minValue: Math.min(minValue, ...prices), maxValue: Math.max(maxValue, ...prices) } };
}

/** One point a second: the latest of it. The library wants whole seconds that rise; the clock shown is this machine's. */
function add(points, ms, cents) {
  const time = secondsOf(ms);
  const last = points.at(-1);
  if (last && time < last.time) return;
  if (last?.time === time) points.pop();
  points.push({ time, value: Number(cents), ms });
}

async function fill(drawn, box) {
  const { symbol } = state;
  drawn.symbol = null;
  drawn.points = [];
  const { points } = symbol ? await api.points(symbol).catch(() => ({ points: [] })) : { points: [] };
  if (symbol !== state.symbol) return;
  drawn.symbol = symbol;
  for (const point of points) add(drawn.points, point.time_ms, centsOf(point.price));
  takeTicks(drawn);
  drawn.series?.setData(drawn.points);
  drawn.chart?.timeScale().fitContent();
  drawLines(drawn);
  tell(drawn, box);
}

function takeTicks(drawn) {
  const ticks = state.ticks.get(drawn.symbol)?.splice(0) ?? [];
  const from = drawn.points.at(-1)?.time;
  for (const tick of ticks) add(drawn.points, tick.ms, tick.cents);
  return from;
}

function drawNew(drawn) {
  if (!drawn.symbol) return;
  const from = takeTicks(drawn);
  // Only what is at or behind the last point drawn is new.
  for (const point of drawn.points.slice(-60)) if (from == null || point.time >= from) drawn.series?.update(point);
}

function drawLines(drawn) {
  if (!drawn.series) return;
  for (const line of drawn.lines) drawn.series.removePriceLine(line);
  drawn.lines = armed().map(([way, price]) => drawn.series.createPriceLine({
    price: Number(centsOf(price)), title: `${way} trigger`, color: colour(`--${way}`), lineWidth: 2, lineStyle: 2, axisLabelVisible: true,
  }));
}

function tell(drawn, box) {
  const last = drawn.points.at(-1);
  const lines = armed().map(([way, price]) => `, ${way} trigger at ${dollarsOf(price)}`).join('');
  box.classList.toggle('empty', !last);
  const words = last ? `Line chart of ${drawn.symbol}, latest price ${dollars(BigInt(last.value))}${lines}. The table has the figures.` : 'Line chart without prices yet.';
  if (box.getAttribute('aria-label') !== words) box.setAttribute('aria-label', words);
}

function priceTable(drawn) {
  const prices = drawn.points.slice(-ROWS).reverse().map((point) => [timeText(point.ms), dollars(BigInt(point.value))]);
  const lines = armed().map(([way, price]) => [`${way === 'buy' ? 'Buy' : 'Sell'} trigger`, dollarsOf(price)]);
  return table(`Latest prices${drawn.symbol ? ` of ${drawn.symbol}` : ''}`, [['Time'], ['Price', true]], [...lines, ...prices], 'No prices yet.');
}
