import { useEffect, useMemo, useState } from 'preact/hooks';
import { Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import type * as GraphLayout from './graph-layout.ts';
import type { GraphNode, RunGraph } from './graph-of.ts';

interface GraphProps {
  graph: RunGraph;
  selected: string | undefined;
  onSelect: (stepId: string) => void;
}

type LayoutModule = typeof GraphLayout;

/** Jobs, steps and child runs of a run, connected by their dependencies. The layout library is loaded on first use. */
export function Graph({ graph, selected, onSelect }: GraphProps) {
  const [library, setLibrary] = useState<LayoutModule>();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    import('./graph-layout.ts').then(setLibrary, setError);
  }, []);
  // The status of nodes changes often, but their places only change with the nodes and edges.
  const shape = JSON.stringify([graph.nodes.map(({ id }) => id), graph.edges]);
  const layout = useMemo(() => library?.layOut(graph), [library, shape]);
  if (error) return <Failure error={error} />;
  if (!library || !layout) return <Loading what="the graph" />;
  const { width, height, places, paths } = layout;
  const size = { inlineSize: `${library.NODE_WIDTH}px`, blockSize: `${library.NODE_HEIGHT}px` };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard.
    <section class="graph" aria-label="Jobs and steps of the run" tabIndex={0}>
      <div style={{ inlineSize: `${width}px`, blockSize: `${height}px` }}>
        <svg width={width} height={height} aria-hidden="true">
          <marker
            id="graph-arrow"
            viewBox="0 0 8 8"
            refX="8"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            orient="auto"
          >
            <path d="M0,0L8,4L0,8z" />
          </marker>
          {paths.map((path) => (
            <path key={path} class="edge" d={path} marker-end="url(#graph-arrow)" />
          ))}
        </svg>
        <ul>
          {graph.nodes.map((node) => {
            const { x, y } = places.get(node.id)!;
            return (
              <li key={node.id} style={{ ...size, insetInlineStart: `${x}px`, insetBlockStart: `${y}px` }}>
                <Node node={node} isSelected={node.of === selected} onSelect={onSelect} />
              </li>
            );
          })}
        </ul>
      </div>
    </section>
  );
}

interface NodeProps {
  node: GraphNode;
  isSelected: boolean;
  onSelect: (stepId: string) => void;
}

function Node({ node: { kind, of, name, status }, isSelected, onSelect }: NodeProps) {
  const content = (
    <>
      <span class="name">
        <span class="kind">{kind}</span> {name}
      </span>
      <Status value={status} />
    </>
  );
  if (kind === 'job') return <div class="node job">{content}</div>;
  if (kind === 'run')
    return (
      <a class="node run" href={`/studio/runs/${of}`} title={of}>
        {content}
      </a>
    );
  return (
    <button type="button" class="node" title={of} aria-pressed={isSelected} onClick={() => onSelect(of)}>
      {content}
    </button>
  );
}
