import { afterAll, beforeAll } from 'vitest';
import { type EngineName, missing, startEngine, type TestEngine } from '../plugins/engine.ts';

/** The engines of this machine that tests on containers run on. */
export const CONTAINER_ENGINES = (['podman', 'docker'] as const).filter(
  (name) => missing(name) === undefined,
);

/** Starts an engine before the tests of a file or a `describe`, hands it to `take`, and stops it after them. */
export function useEngine(name: EngineName, take: (engine: TestEngine) => void): void {
  let engine: TestEngine | undefined;
  beforeAll(async () => {
    engine = await startEngine(name);
    take(engine);
  }, 180_000);
  afterAll(async () => {
    await engine?.stop();
  }, 60_000);
}

/** The ids of all containers, ended ones included. */
export function containersOf(engine: TestEngine): string[] {
  return engine.cli('ps', '--all', '--quiet').trim().split('\n').filter(Boolean);
}
