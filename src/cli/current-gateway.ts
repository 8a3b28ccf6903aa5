import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../kit/config/config.ts';
import { isRecord } from '../kit/data/is-record.ts';
import { userConfigFolder } from '../kit/files/user-folder.ts';
import { writePrivateFile } from '../supervisor/data-folder.ts';

/**
 * Stores the gateways selected by `svc login`. Each project has one gateway. Commands outside of projects share one
 * gateway.
 */
export interface CurrentGateway {
  find(): string | undefined;
  save(url: string): void;
  /** Removes the gateway with this URL from all projects. */
  remove(url: string): void;
}

/**
 * Key of the gateway for commands outside of projects. All other keys are absolute paths of projects, which never equal
 * `*`.
 */
const USER_KEY = '*';

/**
 * Returns the store of selected gateways. `projectDir` is the folder of the config file, or null outside of a project.
 */
export function currentGateway(env: Environment, projectDir: string | null): CurrentGateway {
  const folder = join(userConfigFolder(env), 'svc');
  const file = join(folder, 'gateways.json');
  const key = projectDir ?? USER_KEY;

  function read(): Record<string, string> {
    try {
      const found: unknown = JSON.parse(readFileSync(file, 'utf8'));
      const entries = isRecord(found) ? Object.entries(found) : [];
      return Object.fromEntries(
        entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      );
    } catch {
      return {};
    }
  }
  function write(gateways: Record<string, string>): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writePrivateFile(file, JSON.stringify(gateways));
  }
  return {
    find() {
      const gateways = read();
      return Object.hasOwn(gateways, key) ? gateways[key] : undefined;
    },
    save: (url) => write({ ...read(), [key]: new URL(url).origin }),
    remove(url) {
      const all = Object.entries(read());
      const left = all.filter(([, origin]) => origin !== new URL(url).origin);
      if (left.length < all.length) write(Object.fromEntries(left));
    },
  };
}
