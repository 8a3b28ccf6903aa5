import { type Entity, isFinal, PART_STATES, RUN_STATES, TRANSITIONS } from './states.ts';

interface Line {
  from: string;
  text: string;
}

const code = (text: string): string => `\`${text}\``;
const listed = (states: readonly string[]): string => states.map(code).join(', ');

/**
 * Formats transitions as lines. Transitions that differ only in their source state, or only in their target state,
 * share a line.
 */
function linesOf(entity: Entity): Line[] {
  const alike = Map.groupBy(TRANSITIONS[entity], ({ to, by, when }) => JSON.stringify([to, by, when]));
  const lines = [...alike.values()].map((group) => ({
    ...group[0]!,
    from: listed(group.map(({ from }) => from)),
  }));
  const sameFrom = Map.groupBy(lines, ({ from, by, when }) => JSON.stringify([from, by, when]));
  return [...sameFrom.values()].map((group) => {
    const { from, by, when } = group[0]!;
    const actor = by === 'engine' ? '' : ` (${by})`;
    return { from, text: `${listed(group.map(({ to }) => to))}${actor}: ${when}` };
  });
}

/** Renders lines as a Markdown list, grouped by source state. */
function list(lines: readonly Line[]): string {
  return [...Map.groupBy(lines, ({ from }) => from)]
    .map(([from, below]) =>
      below.length === 1
        ? `- ${from} → ${below[0]!.text}`
        : [`- ${from} →`, ...below.map(({ text }) => `  - ${text}`)].join('\n'),
    )
    .join('\n');
}

function statesLine(states: ReadonlyArray<Parameters<typeof isFinal>[0]>): string {
  const names = (final: boolean): string =>
    states
      .filter((state) => isFinal(state) === final)
      .map(code)
      .join(', ');
  return `States: ${names(false)}; final: ${names(true)}.`;
}

const section = (title: string, parts: string[]): string => [`## ${title}`, ...parts].join('\n\n');

/** Generates docs/workflow-states.md from the transition table. A test fails if the file is out of date. */
export function statesPage(): string {
  const [job, step] = [linesOf('job'), linesOf('step')];
  const has = (lines: readonly Line[], { from, text }: Line): boolean =>
    lines.some((line) => line.from === from && line.text === text);
  const both = job.filter((line) => has(step, line));
  const own = (lines: readonly Line[]): string => list(lines.filter((line) => !has(both, line)));
  const sections = [
    section('Run', [statesLine(RUN_STATES), list(linesOf('run'))]),
    section('Job and step', [statesLine(PART_STATES), list(both)]),
    section('Job', [own(job)]),
    section('Step', [own(step)]),
  ];
  return `# States of runs, jobs and steps

Generated from \`src/daemons/workflow/domain/states.ts\` by \`npm run generate\`. No other transition is possible. The
workflow service makes each one unless brackets name another actor: \`caller\`, the tenant that owns the run, or
\`recovery\`, the service at its start after a crash.

${sections.join('\n\n')}
`;
}
