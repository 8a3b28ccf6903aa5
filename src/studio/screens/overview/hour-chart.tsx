import { useEffect, useRef } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { DataTable } from '../../ui/data-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import type { HourPlot, PlottedHour } from './plot.ts';

const HOUR_MS = 3600_000;

interface HourChartProps {
  title: string;
  /** Name of the counted things in the plural, such as `deliveries`. */
  what: string;
  hours: readonly PlottedHour[] | undefined;
  error: Error | undefined;
  onRetry: () => void;
  /** Address of the records of an hour, of the failed ones if any failed. */
  recordsOf: (hour: PlottedHour) => string;
}

/** Records per hour and their failures, as a chart and as a table. Each hour leads to its failures and log lines. */
export function HourChart({ title, what, hours, error, onRetry, recordsOf }: HourChartProps) {
  const sum = (name: 'total' | 'failed'): number => (hours ?? []).reduce((all, hour) => all + hour[name], 0);
  return (
    <Section title={title}>
      {error && <Failure error={error} onRetry={onRetry} />}
      {!hours && !error && <Loading what={what} />}
      {hours && (
        <>
          <p>
            {sum('total')} {what} in the last 24 hours,{' '}
            <span class={sum('failed') > 0 ? 'failures' : undefined}>{sum('failed')} failed</span>. The failed
            ones are red.
          </p>
          <Plot hours={hours} recordsOf={recordsOf} />
          <details>
            <summary>Show as a table</summary>
            <DataTable
              label={title}
              columns={[
                { name: 'Hour', value: ({ hour }) => <Time ms={hour} /> },
                { name: 'All', value: ({ total }) => total, isNumber: true },
                { name: 'Failed', value: ({ failed }) => failed, isNumber: true },
                {
                  name: 'List',
                  value: (hour) => <a href={recordsOf(hour)}>{hour.failed > 0 ? 'Failures' : 'All'}</a>,
                },
                { name: 'Log lines', value: (hour) => <a href={logsOf(hour)}>Logs</a> },
              ]}
              items={hours.toReversed()}
              keyOf={({ hour }) => String(hour)}
            />
          </details>
        </>
      )}
    </Section>
  );
}

/** The chart is for the eye and the mouse. The table below it has the same numbers and links. */
function Plot({
  hours,
  recordsOf,
}: {
  hours: readonly PlottedHour[];
  recordsOf: HourChartProps['recordsOf'];
}) {
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<HourPlot | null>(null);
  const latest = useRef(hours);
  latest.current = hours;
  const { route } = useLocation();
  useEffect(() => {
    let isGone = false;
    void import('./plot.ts').then(({ HourPlot }) => {
      if (isGone || !element.current) return;
      plot.current = new HourPlot(element.current, (start) => {
        const hour = latest.current.find((each) => each.hour === start);
        if (hour) route(recordsOf(hour));
      });
      plot.current.show(latest.current);
    });
    return () => {
      isGone = true;
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.show(hours), [hours]);
  return (
    <div
      class="plot"
      aria-hidden="true"
      ref={element}
      title="A click on a bar lists the failures of its hour"
    />
  );
}

/** Returns the range of an hour as parameters of an address. */
export function rangeOf({ hour }: PlottedHour, from: string, to: string): string {
  const time = (ms: number): string => encodeURIComponent(new Date(ms).toISOString());
  return `${from}=${time(hour)}&${to}=${time(hour + HOUR_MS)}`;
}

function logsOf(hour: PlottedHour): string {
  const level = hour.failed > 0 ? '&level=error' : '';
  return `/studio/logs?${rangeOf(hour, 'from', 'to')}${level}`;
}
