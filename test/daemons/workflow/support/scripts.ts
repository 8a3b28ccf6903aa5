import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { startRun } from '../../../../src/contracts/index.ts';
import { createClient, serviceHeaders } from '../../../../src/http/index.ts';
import { TEST_KEYS, tempDir } from '../../../support/daemon.ts';
import { asDefinition, startWorkflow, type TestWorkflow } from './workflow.ts';

export type Asked = {
  role?: 'viewer' | 'editor' | 'admin' | null | 'absent';
  isAdministrator?: boolean;
  hostId?: string;
  via?: 'agent' | 'elicitation';
};

/** Calls as a gateway that passes on what it knows of a caller. `absent`: a call without a gateway. */
export function headersOf({ role = 'admin', hostId = 'ada', isAdministrator = true, via }: Asked) {
  const known = role === 'absent' ? {} : { role };
  return serviceHeaders(TEST_KEYS.internalSecret, {
    ...{ namespaceId: 'default', hostId, isAdministrator, via, ...known },
  });
}

/** Starts scripts in a definition of its own, by default as an administrator of the platform. */
export async function startScript(
  it: TestWorkflow,
  steps: object[],
  { input = {}, more = {}, ...as }: { input?: object; more?: object } & Asked = {},
): Promise<string> {
  const client = createClient({ url: it.url, peer: 'workflow' });
  const body = { definition: asDefinition({ steps, ...more }), input };
  return (await client.call(startRun, { body } as never, { headers: headersOf(as) })).run.id;
}

/** Returns the path of a file in the working folder of a run. */
export const fileOf = (it: TestWorkflow, id: string, name: string) =>
  join(it.dataDir, 'workspaces', id, 'files', name);

/** Starts a script that runs until `letGo`, and counts its rounds. */
export async function startHolder(it: TestWorkflow) {
  const run = 'until [ -e go ]; do printf x >> rounds; sleep 0.02; done';
  const id = await startScript(it, [{ id: 'script', run }]);
  const rounds = () =>
    existsSync(fileOf(it, id, 'rounds')) ? readFileSync(fileOf(it, id, 'rounds')).length : 0;
  await expect.poll(rounds, { timeout: 10_000, interval: 20 }).toBeGreaterThan(0);
  return { id, rounds, letGo: () => writeFile(fileOf(it, id, 'go'), '') };
}

/** A service with workflow files in its project. */
export async function projectWith(files: Record<string, object>, config: object = {}) {
  const projectDir = await tempDir();
  await mkdir(join(projectDir, 'workflows'));
  for (const [name, definition] of Object.entries(files))
    await writeFile(join(projectDir, 'workflows', `${name}.yaml`), JSON.stringify(definition));
  return startWorkflow({ projectDir, dataDir: join(projectDir, '.svc'), config: { ...config } });
}
