import { type Entity, isFinal, PART_STATES, RUN_STATES, TRANSITIONS } from './states.ts';

const TITLES: Record<Entity, string> = { run: 'Run', job: 'Job', step: 'Step' };
const STATES: Record<Entity, readonly string[]> = { run: RUN_STATES, job: PART_STATES, step: PART_STATES };

/** docs/workflow-states.md, from the table; a test keeps the file alike. */
export function statesPage(): string {
  const parts = (Object.keys(TITLES) as Entity[]).map(
    (entity) => `## ${TITLES[entity]}

States: ${STATES[entity].map((state) => `\`${state}\`${isFinal(state as 'failed') ? ' (final)' : ''}`).join(', ')}.

| from | to | by | when |
|---|---|---|---|
${TRANSITIONS[entity].map(({ from, to, by, when }) => `| \`${from}\` | \`${to}\` | ${by} | ${when} |`).join('\n')}
`,
  );
  return `# States of runs, jobs and steps

Printed from \`src/daemons/workflow/domain/states.ts\` by \`node scripts/write-workflow-states.ts\`. No other transition
is possible: everything that changes a status goes through that table.

\`caller\` is whoever owns the run, through the API; \`engine\` the workflow daemon that holds the run; \`recovery\` the
same daemon at its start, over what a dead one left behind.

${parts.join('\n')}`;
}
