import { Graph, layout } from '@dagrejs/dagre';
import type { RunGraph } from './graph-of.ts';

export const NODE_WIDTH = 184;
export const NODE_HEIGHT = 52;
const MARGIN = 8;

export interface GraphLayout {
  width: number;
  height: number;
  /** Top left corner of each node. */
  places: ReadonlyMap<string, { x: number; y: number }>;
  /** Path data of each edge. */
  paths: readonly string[];
}

/** Places the nodes in ranks from top to bottom. */
export function layOut({ nodes, edges }: RunGraph): GraphLayout {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 20, ranksep: 30, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of nodes) graph.setNode(id, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const { from, to } of edges) graph.setEdge(from, to);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const places = new Map(
    nodes.map(({ id }) => {
      const { x, y } = graph.node(id) as { x: number; y: number };
      return [id, { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2 }];
    }),
  );
  const paths = graph.edges().map((edge) => {
    const { points } = graph.edge(edge) as { points: Array<{ x: number; y: number }> };
    return `M${points.map(({ x, y }) => `${Math.round(x)},${Math.round(y)}`).join('L')}`;
  });
  return { width, height, places, paths };
}
