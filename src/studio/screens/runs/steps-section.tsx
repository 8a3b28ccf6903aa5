import { useLocation } from 'preact-iso';
import type { Reply } from '../../api/call.ts';
import { Section } from '../../ui/section.tsx';
import { Graph } from './graph.tsx';
import { graphOf, MAX_NODES } from './graph-of.ts';
import { rowsOf } from './timeline.ts';
import { useRunAddress } from './use-run-address.ts';
import { Waterfall } from './waterfall.tsx';

interface StepsSectionProps {
  run: Reply<'getRun'>;
  steps: Reply<'listRunSteps'>['items'];
  selected: string | undefined;
  onSelect: (stepId: string) => void;
}

const VIEWS = { timeline: 'Timeline', graph: 'Graph' } as const;

/** Steps of a run, as a timeline or as a graph. The address contains the view. */
export function StepsSection({ run, steps, selected, onSelect }: StepsSectionProps) {
  const { query } = useLocation();
  const open = useRunAddress();
  const view = query.view === 'graph' ? 'graph' : 'timeline';
  const graph = view === 'graph' ? graphOf(run, steps) : undefined;
  const isTooLarge = graph !== undefined && graph.nodes.length > MAX_NODES;
  const show = (other: keyof typeof VIEWS) => (
    <button
      type="button"
      aria-pressed={other === view}
      onClick={() => open({ view: other, step: query.step, ...rerunOf(query) })}
    >
      {VIEWS[other]}
    </button>
  );
  return (
    <Section
      title={VIEWS[view]}
      actions={
        <>
          {show('timeline')}
          {show('graph')}
        </>
      }
    >
      {isTooLarge && (
        <p class="advice">
          The graph shows at most {MAX_NODES} nodes, and this run has more. The timeline shows its steps.
        </p>
      )}
      {graph && !isTooLarge ? (
        <Graph graph={graph} selected={selected} onSelect={onSelect} />
      ) : (
        <Waterfall
          rows={rowsOf(steps, Date.now())}
          from={run.createdAt}
          to={run.finishedAt ?? Date.now()}
          selected={selected}
          onSelect={onSelect}
        />
      )}
    </Section>
  );
}

const rerunOf = ({ rerun }: Record<string, string>) => (rerun === undefined ? {} : { rerun });
