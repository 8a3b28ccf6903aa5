import { type Entity, isFinal, PART_STATES, RUN_STATES, TRANSITIONS } from './states.ts';

const code = (text: string): string => `\`${text}\``;

/** Formats transitions; those that differ only in `from` share a line. */
function linesOf(entity: Entity): string[] {
  const alike = Map.groupBy(TRANSITIONS[entity], ({ to, by, when }) => JSON.stringify([to, by, when]));
  return [...alike.values()].map((group) => {
    const { to, by, when } = group[0]!;
    return `- ${group.map(({ from }) => code(from)).join(', ')} → ${code(to)} (${by}): ${when}`;
  });
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

/** Generates docs/workflow-states.md from the table; a test keeps the file up to date. */
export function statesPage(): string {
  const [job, step] = [linesOf('job'), linesOf('step')];
  const both = job.filter((line) => step.includes(line));
  const own = (lines: string[]): string => lines.filter((line) => !both.includes(line)).join('\n');
  const sections = [
    section('Run', [statesLine(RUN_STATES), linesOf('run').join('\n')]),
    section('Job and step', [statesLine(PART_STATES), both.join('\n')]),
    section('Job', [own(job)]),
    section('Step', [own(step)]),
  ];
  return `# States of runs, jobs and steps

Generated from \`src/daemons/workflow/domain/states.ts\` by \`npm run generate\`. No other transition is possible.
The actor is in brackets: \`caller\`, the tenant that owns the run; \`engine\`, the workflow service that executes it;
\`recovery\`, that service at its start, after a crash of its predecessor.

${sections.join('\n\n')}
`;
}
