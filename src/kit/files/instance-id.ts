import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Environment } from '../config/secret-ref.ts';
import { codeOf } from '../errors/errors.ts';
import type { Random } from '../security/random.ts';

/**
 * File in the data folder with the id of the node. Backups omit the file, because a restored copy is a different node.
 */
export const INSTANCE_FILE = 'instance';

/**
 * Returns the id of this node, which is stored in the data folder. `SVC_INSTANCE` takes precedence, for nodes whose
 * data folder is temporary.
 */
export function instanceId(dataDir: string, env: Environment, random: Random): string {
  if (env.SVC_INSTANCE) return env.SVC_INSTANCE;
  const file = join(dataDir, INSTANCE_FILE);
  return read(file) ?? create(file, `node_${random.uuid()}`);
}

/** Maximum number of processes of a service on one node. Equals the maximum of `gateway.processes`. */
const MAX_PROCESSES = 64;

/** Returns the instance ids that any processes of a node may have used. */
export function instancesOf(node: string): string[] {
  return [node, ...Array.from({ length: MAX_PROCESSES }, (_, index) => processInstance(node, index + 1))];
}

/** Returns the instance id of one of several processes of a node. */
export function processInstance(node: string, number: number): string {
  return `${node}/${number}`;
}

/** Returns whether the instance is a process of the node. */
export function isOfNode(instance: string, node: string): boolean {
  return instance === node || instance.startsWith(`${node}/`);
}

/** Creates the file by linking a complete temporary file. Services that start at the same time thus use the same id. */
function create(file: string, id: string): string {
  const draft = `${file}.${id}`;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(draft, `${id}\n`, { mode: 0o600 });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return read(file) ?? id;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
