// The market's trades of the instrument in hand as candles, and its figures of the day.

import * as api from './api.js';
import { card, el, refill, setText } from './dom.js';
import { colour, plot, secondsOf } from './plot.js';
import { grouped, priceText, shown, unitsOfPrice } from './prices.js';
import { state } from './state.js';
import { mark } from './topics.js';

const INTERVALS = [['1m', '1 minute'], ['5m', '5 minutes'], ['1h', '1 hour'], ['1d', '1 day']];
const CANDLES_MAX = 300;
/** Where volumes stand: the lowest part of the chart. */
const VOLUME_TOP = 0.8;

/** Milliseconds since 1970. */
export const msOf = (ns) => Number(BigInt(ns) / 1_000_000n);

/** Reads the candles anew. */
export async function readCandles() {
  const { symbol, interval } = state;
  const told = await api.candles(symbol, interval, CANDLES_MAX).catch(() => []);
  if (symbol !== state.symbol || interval !== state.interval) return;
  state.candles = told;
  mark('candles');
}

/** Takes in a candle as it is now. */
export function takeCandle({ symbol, interval, candle }) {
  if (symbol !== state.symbol || interval !== state.interval) return;
  const last = state.candles.at(-1);
  if (last && BigInt(last.start_ns) > BigInt(candle.start_ns)) return;
  if (last?.start_ns === candle.start_ns) state.candles.pop();
  state.candles.push(candle);
  mark('candle');
}

const timeOf = (candle) => secondsOf(msOf(candle.start_ns));
const units = (text) => Number(unitsOfPrice(text));
const bar = (one) => ({ time: timeOf(one), open: units(one.open), high: units(one.high), low: units(one.low), close: units(one.close) });
const volume = (one) => ({ time: timeOf(one), value: Number(one.volume), color: colour('--line') });

/** The chart, what it shows last in words, and the day's figures. */
export function candlesCard(hear) {
  const box = el('div', { class: 'chart', role: 'img', 'aria-describedby': 'candle' });
  const last = el('p', { class: 'hint number', id: 'candle' });
  const figures = el('dl', { class: 'figures', id: 'ticker' });
  const interval = el('select', { id: 'interval', 'aria-label': 'Interval', onchange: () => { state.interval = interval.value; mark('interval'); } },
    INTERVALS.map(([value, words]) => el('option', { value, selected: value === state.interval }, words)));
  const made = card('Chart', 'chart-card', figures, el('div', { class: 'chart-head' }, last, interval), box);
  const drawn = { series: null };
  const whole = () => { setAll(drawn); tell(box, last); };
  hear('candles', whole);
  hear('candle', () => { setLast(drawn); tell(box, last); });
  hear('symbol', () => { setText(made.querySelector('h2'), state.symbol || 'Chart'); });
  hear('ticker', () => refill(figures, figuresOf(state.ticker)));
  hear('leave', () => drawn.chart?.remove());
  begin(box).then((begun) => { Object.assign(drawn, begun); whole(); });
  return made;
}

const begin = (box) => plot(box, {
  words: priceText,
  options: { timeScale: { timeVisible: true, secondsVisible: false, rightOffset: 3, maxBarSpacing: 14 } },
  series: (chart, library, priceFormat) => {
    const bars = chart.addSeries(library.CandlestickSeries, { priceFormat, priceLineVisible: false });
    const volumes = chart.addSeries(library.HistogramSeries, { priceFormat: { type: 'volume' }, priceScaleId: '', priceLineVisible: false, lastValueVisible: false });
    volumes.priceScale().applyOptions({ scaleMargins: { top: VOLUME_TOP, bottom: 0 } });
    return { bars, volumes };
  },
  paint: ({ bars, volumes }) => {
    const [up, down] = [colour('--buy'), colour('--sell')];
    bars.applyOptions({ upColor: up, downColor: down, wickUpColor: up, wickDownColor: down, borderVisible: false });
    volumes.setData(state.candles.map(volume));
  },
});

function setAll({ chart, series }) {
  if (!series) return;
  series.bars.setData(state.candles.map(bar));
  series.volumes.setData(state.candles.map(volume));
  chart.timeScale().fitContent();
}

function setLast({ series }) {
  const one = state.candles.at(-1);
  if (!series || !one) return;
  series.bars.update(bar(one));
  series.volumes.update(volume(one));
}

function tell(box, last) {
  const one = state.candles.at(-1);
  setText(last, one ? `Open ${shown(one.open)}, high ${shown(one.high)}, low ${shown(one.low)}, close ${shown(one.close)}, ${grouped(one.volume)} shares` : 'No trades yet.');
  box.setAttribute('aria-label', `Candles of ${state.symbol || 'nothing'}`);
}

function figuresOf(ticker) {
  const pair = (words, text, id) => el('div', {}, el('dt', {}, words), el('dd', { id, class: id }, text));
  const level = (one) => (one ? `${shown(one.price)} × ${grouped(one.quantity)}` : '–');
  const { traded } = ticker;
  return [pair('Last', shown(ticker.last)), pair('Bid', level(ticker.bid), 'buy'), pair('Offer', level(ticker.offer), 'sell'),
    pair('Open', shown(traded?.open)), pair('High', shown(traded?.high)), pair('Low', shown(traded?.low)), pair('Volume', traded ? grouped(traded.volume) : '–')];
}
