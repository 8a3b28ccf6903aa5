import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuUsOf } from './process-usage.ts';
import type { ServiceMessage } from './workflow-process.ts';

const PROGRAM = fileURLToPath(new URL('./workflow-process.ts', import.meta.url));

/** The workflow service in its own process, with clients in this one, as in production. */
export interface WorkflowDaemon {
  /** Starts a run of three steps over HTTP and waits for its end. */
  once(): Promise<void>;
  /** CPU time of the service and its plugin processes since start, in microseconds. Linux only. */
  cpuUs(): number;
  close(): Promise<void>;
}

/** Creates a project with a plugin `bench` whose only command does nothing. */
async function writeProject(folder: string): Promise<string> {
  const projectDir = await mkdtemp(join(folder, 'project-'));
  const plugin = join(projectDir, 'plugins/bench');
  await mkdir(plugin, { recursive: true });
  await writeFile(join(plugin, 'package.json'), '{"name": "bench", "version": "1.0.0", "type": "module"}');
  await writeFile(join(plugin, 'noop.js'), 'export const noop = () => null;\n');
  await writeFile(
    join(plugin, 'svc.plugin.json'),
    JSON.stringify({
      schema: 'svc.plugin/3',
      id: 'bench',
      version: '1.0.0',
      commands: [{ id: 'noop', handler: 'noop.js#noop', idempotent: true }],
    }),
  );
  return projectDir;
}

/** Starts the service with sections of a config. Its runs have three times the given step. */
export async function startWorkflowDaemon(
  folder: string,
  step: { uses: string; with?: object },
  config: object = {},
): Promise<WorkflowDaemon> {
  const child = fork(PROGRAM, [await writeProject(folder), JSON.stringify(config)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const waiting = new Map<string, () => void>();
  /** Runs that ended before the response to their start was read. */
  const endedEarly = new Set<string>();
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`The workflow service ended with code ${code} during its start.`);
  });
  const [first] = (await Promise.race([once(child, 'message'), exited])) as [{ url: string }];
  exited.catch(() => {});
  child.on('message', (message: ServiceMessage) => {
    for (const id of 'ended' in message ? message.ended : []) {
      const resolve = waiting.get(id);
      if (resolve) resolve();
      else endedEarly.add(id);
      waiting.delete(id);
    }
  });
  const body = JSON.stringify({ definition: { id: 'bench', jobs: { main: { steps: [step, step, step] } } } });
  const agent = new Agent({ keepAlive: true });

  return {
    async once() {
      const id = await startRun(first.url, body, agent);
      if (!endedEarly.delete(id)) await new Promise<void>((resolve) => waiting.set(id, resolve));
    },
    cpuUs: () => cpuUsOf(child.pid!),
    async close() {
      agent.destroy();
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

/** Starts a run and returns its id. A client library would cost more than the service under test. */
function startRun(url: string, body: string, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const post = request(`${url}/api/v1/workflows/runs`, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () =>
        response.statusCode === 202
          ? resolve((JSON.parse(text) as { run: { id: string } }).run.id)
          : reject(new Error(text)),
      );
    });
    post.on('error', reject).end(body);
  });
}
