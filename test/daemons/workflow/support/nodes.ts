import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect } from 'vitest';
import { atEnd } from '../../../support/at-end.ts';
import { tempDir } from '../../../support/daemon.ts';
import { migratedPostgres } from '../../../support/migrated-postgres.ts';
import { type Ledger, startLedger } from './ledger.ts';
import { type DaemonProcess, type KillSignal, type SpawnedProcess, spawnProcess } from './process.ts';

/** A workflow service of a node, in a process of its own. */
export interface Node extends DaemonProcess {
  name: string;
  /** Stops the process until `resume`, as a machine that hangs. */
  pause(): void;
  resume(): void;
}

/** Nodes whose workflow services share one PostgreSQL. */
export interface Nodes {
  ledger: Ledger;
  config: Record<string, unknown>;
  database: pg.Client;
  /** Starts the workflow service of a node, again after its end. */
  start(name: string): Promise<Node>;
  /** The node that executes the run. */
  holderOf(runId: string): Promise<string | undefined>;
}

const POLL = { timeout: 30_000, interval: 20 };

export interface NodesOptions {
  config?: { workflow?: object; [more: string]: unknown };
  /** The database; default: a new one of the shared server. */
  url?: string;
  /** Files in the project of each node. */
  files?: Record<string, string>;
}

export async function openNodes({
  config: own = {},
  url: given,
  files = {},
}: NodesOptions = {}): Promise<Nodes> {
  const url = given ?? (await migratedPostgres());
  const ledger = await startLedger();
  const database = new pg.Client(url);
  await database.connect();
  // A test may restart the server.
  database.on('error', () => {});
  atEnd(() => database.end());
  const workflow = { httpAllow: ['127.0.0.1'], drainMs: 1000, ...own.workflow };
  const config = { ...own, store: { url }, workflow };
  const folders = new Map<string, string>();
  return {
    ...{ ledger, config, database },
    async start(name) {
      const dataDir = folders.get(name) ?? (await tempDir());
      for (const [file, text] of Object.entries(files)) writeFileSync(join(dataDir, file), text);
      folders.set(name, dataDir);
      const spawned = spawnProcess({
        dataDir,
        config,
        hadFault: false,
        // Nodes that advertise loopback are on one machine, so their services call each other without a gateway.
        env: { ...process.env, SVC_INSTANCE: name, SVC_ADVERTISE_URL: 'http://127.0.0.1:4000' },
      });
      return nodeOf(name, spawned, await spawned.listening);
    },
    async holderOf(runId) {
      const { rows } = await database.query(
        'select boot.instance from svc.run join svc.boot using (fence) where run.id = $1',
        [runId],
      );
      return rows[0]?.instance;
    },
  };
}

function nodeOf(name: string, { pid }: SpawnedProcess, daemon: DaemonProcess): Node {
  const kill = async (signal?: KillSignal): Promise<void> => {
    process.kill(pid, 'SIGCONT');
    await daemon.kill(signal);
  };
  return {
    ...daemon,
    ...{ name, kill },
    pause: () => void process.kill(pid, 'SIGSTOP'),
    resume: () => void process.kill(pid, 'SIGCONT'),
  };
}

/** Waits until the run has the status, as the node sees it. */
export async function until(node: Node, id: string, status: string): Promise<void> {
  const state = async () => {
    const { status, error } = await node.run(id);
    return { status, error };
  };
  await expect.poll(state, POLL).toMatchObject({ status });
}

export const untilHeld = (nodes: Nodes, id: string, name: string): Promise<void> =>
  expect.poll(() => nodes.holderOf(id), POLL).toBe(name) as unknown as Promise<void>;
