import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface PlottedHour {
  hour: number;
  total: number;
  failed: number;
}

const HOUR_S = 3600;
const HEIGHT = 180;
/** Smallest top of the axis of numbers, so that a single record is not as high as the chart. */
const MIN_TOP = 4;

/** Bar chart of hours in an element. Colours follow the theme. */
export class HourPlot {
  readonly #plot: uPlot;
  readonly #observers: Array<{ disconnect(): void }>;

  constructor(element: HTMLElement, onOpen: (hour: number) => void) {
    this.#plot = new uPlot(optionsOf(element), [[], [], []], element);
    this.#plot.over.addEventListener('click', ({ offsetX }) => {
      const seconds = this.#plot.posToVal(offsetX, 'x');
      onOpen(Math.floor(seconds / HOUR_S) * HOUR_S * 1000);
    });
    const size = new ResizeObserver(() => this.#plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    size.observe(element);
    const theme = new MutationObserver(() => this.#plot.redraw());
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    this.#observers = [size, theme];
  }

  show(hours: readonly PlottedHour[]): void {
    const times = hours.map(({ hour }) => hour / 1000);
    this.#plot.setData([times, hours.map(({ total }) => total), hours.map(({ failed }) => failed)]);
  }

  destroy(): void {
    for (const observer of this.#observers) observer.disconnect();
    this.#plot.destroy();
  }
}

function optionsOf(element: HTMLElement): uPlot.Options {
  // The values of the style sheet depend on the theme, and a canvas needs resolved colours.
  const colour = (name: string) => (): string => {
    const probe = element.appendChild(document.createElement('span'));
    probe.style.color = `var(${name})`;
    const resolved = getComputedStyle(probe).color;
    probe.remove();
    return resolved;
  };
  const bars = uPlot.paths.bars!({ size: [0.8], align: 1 });
  const axis = { stroke: colour('--dim'), grid: { stroke: colour('--line'), width: 1 } };
  const series = (name: string) => ({
    paths: bars,
    fill: colour(name),
    stroke: colour(name),
    width: 0,
    points: { show: false },
  });
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { range: (_plot, first, last) => [first, last + HOUR_S] },
      y: { range: (_plot, _least, most) => [0, Math.max(MIN_TOP, Math.ceil(most * 1.1))] },
    },
    axes: [
      axis,
      { ...axis, size: 44, incrs: [1, 2, 5].flatMap((step) => powersOf(step)).toSorted((a, b) => a - b) },
    ],
    series: [{}, series('--accent'), series('--bad')],
  };
}

/** Whole steps between the lines of the axis of numbers. */
function powersOf(step: number): number[] {
  return Array.from({ length: 8 }, (_, power) => step * 10 ** power);
}
