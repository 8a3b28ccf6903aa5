import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RunStatus } from '../../../src/contracts/index.ts';
import {
  type Actor,
  type Entity,
  isFinal,
  mayMove,
  move,
  PART_STATES,
  RUN_STATES,
  TRANSITIONS,
} from '../../../src/daemons/workflow/domain/states.ts';
import { statesPage } from '../../../src/daemons/workflow/domain/states-page.ts';
import { packageRoot } from '../../../src/kit/files/paths.ts';

const ACTORS: Actor[] = ['caller', 'engine', 'recovery'];
const STATES: Record<Entity, readonly string[]> = { run: RUN_STATES, job: PART_STATES, step: PART_STATES };

describe.each(['run', 'job', 'step'] as const)('a %s', (entity) => {
  test('makes the transitions of the table and no other', () => {
    const listed = TRANSITIONS[entity].map(({ from, to, by }) => `${from} ${to} ${by}`);
    expect(new Set(listed).size).toBe(listed.length);
    const possible: string[] = [];
    for (const from of STATES[entity])
      for (const to of STATES[entity])
        for (const by of ACTORS) {
          let moved = true;
          try {
            expect(move(entity, from as never, to as never, by)).toBe(to);
          } catch {
            moved = false;
          }
          expect(moved).toBe(mayMove(entity, from, to, by));
          if (moved) possible.push(`${from} ${to} ${by}`);
        }
    expect(possible.toSorted()).toEqual(listed.toSorted());
  });

  test('never leaves a final state, and can end from every other one', () => {
    for (const state of STATES[entity]) {
      const onward = TRANSITIONS[entity].filter(({ from }) => from === state);
      if (isFinal(state as never)) expect(onward).toEqual([]);
      else expect(reachable(entity, state)).toContain('cancelled');
    }
  });
});

function reachable(entity: Entity, start: string): Set<string> {
  const seen = new Set<string>();
  const visit = (state: string): void => {
    if (seen.has(state)) return;
    seen.add(state);
    for (const { from, to } of TRANSITIONS[entity]) if (from === state) visit(to);
  };
  visit(start);
  return seen;
}

test('the states of a run are those of the contract', () => {
  expect([...RUN_STATES].toSorted()).toEqual([...RunStatus.options].toSorted());
});

test('docs/workflow-states.md is the table; mend it with `node scripts/write-workflow-states.ts`', async () => {
  expect(await readFile(join(packageRoot, 'docs/workflow-states.md'), 'utf8')).toBe(statesPage());
});
