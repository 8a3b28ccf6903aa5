import { Status } from '../../ui/status.tsx';
import { durationText } from '../../ui/time.tsx';
import { rangeOf, type Span, type StepRow } from './timeline.ts';

interface WaterfallProps {
  rows: readonly StepRow[];
  from: number;
  to: number;
  selected: string | undefined;
  onSelect: (stepId: string) => void;
}

const LEGEND = { queued: 'queued', running: 'running', waiting: 'waiting', failed: 'failed attempt' };

/** Steps of a run on a common time axis. The time in the queue is apart from the execution. */
export function Waterfall({ rows, from, to, selected, onSelect }: WaterfallProps) {
  const range = rangeOf(rows, { from, to });
  const length = range.to - range.from;
  return (
    <div class="waterfall">
      <ul>
        {rows.map(({ step, spans }) => (
          <li key={step.id}>
            <button type="button" aria-pressed={step.id === selected} onClick={() => onSelect(step.id)}>
              <span class="label">
                <Status value={step.status} /> {step.id}
              </span>
              <svg
                class="bars"
                viewBox="0 0 1000 12"
                preserveAspectRatio="none"
                role="img"
                aria-label={spans.map(textOf).join(', ') || 'not started'}
              >
                {spans.map((span) => (
                  <rect
                    key={`${span.kind}-${span.from}`}
                    class={span.kind}
                    x={((span.from - range.from) / length) * 1000}
                    width={Math.max(2, ((span.to - span.from) / length) * 1000)}
                    y={span.kind === 'queued' ? 4 : 1}
                    height={span.kind === 'queued' ? 4 : 10}
                  />
                ))}
              </svg>
            </button>
          </li>
        ))}
      </ul>
      <p class="legend">
        {Object.entries(LEGEND).map(([kind, text]) => (
          <span key={kind} class={kind}>
            {text}
          </span>
        ))}
        <span class="number">{durationText(length)} in all</span>
      </p>
    </div>
  );
}

function textOf({ kind, from, to }: Span): string {
  return `${LEGEND[kind]} ${durationText(to - from)}`;
}
