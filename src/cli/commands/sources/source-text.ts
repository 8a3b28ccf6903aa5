import type { Destination, Source } from '../../../contracts/index.ts';
import type { Style } from '../../style.ts';
import { table } from '../../table.ts';

/** Returns the target of a destination for the terminal, such as `forward http://localhost:3000/hook`. */
export function targetText({ forward, workflow, queue, command }: Destination): string {
  if (forward !== undefined) return `forward ${forward}`;
  if (workflow !== undefined) return `workflow ${workflow}`;
  if (queue !== undefined) return `queue ${queue}`;
  return `command ${command}`;
}

/** Formats the destinations of a source as a table, with counts if the reply has them. */
export function destinationsTable({ destinations }: Pick<Source, 'destinations'>, style: Style): string {
  if (destinations.length === 0)
    return 'No destinations. Deliveries are recorded only. Connect one with `svc sources connect`.';
  const hasCounts = destinations.some(({ counts }) => counts !== undefined);
  const rows = destinations.map((destination) => {
    const { name, paused, filter, counts } = destination;
    const numbers = counts
      ? [counts.succeeded, counts.accepted + counts.retrying, counts.failed + counts.dead, counts.filtered]
      : [];
    return [
      name,
      targetText(destination),
      paused ? style.yellow('paused') : style.green('active'),
      ...(hasCounts ? numbers.map(String) : []),
      filter ?? '',
    ];
  });
  const counted = hasCounts ? ['succeeded', 'open', 'failed', 'filtered'] : [];
  return table(['destination', 'target', 'state', ...counted, 'filter'], rows, style);
}
