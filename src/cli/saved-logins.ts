import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../kit/config/config.ts';
import { userConfigFolder } from '../kit/files/user-folder.ts';
import { writePrivateFile } from '../supervisor/data-folder.ts';

/** A login to a gateway. The client secret is not stored. */
export interface SavedLogin {
  clientId: string;
  accessToken: string;
  refreshToken: string;
  /** Expiry of the access token, in epoch milliseconds. */
  expiresAt: number;
}

export interface SavedLogins {
  find(url: string): SavedLogin | undefined;
  save(url: string, login: SavedLogin): void;
  /** Returns false if no login to this gateway was stored. */
  remove(url: string): boolean;
}

/** Stores logins to remote gateways in the user's config folder. Only the user can read the file (mode 0600). */
export function savedLogins(env: Environment): SavedLogins {
  const folder = join(userConfigFolder(env), 'svc');
  const file = join(folder, 'logins.json');

  function read(): Record<string, SavedLogin> {
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as Record<string, SavedLogin>;
    } catch {
      return {};
    }
  }
  function write(logins: Record<string, SavedLogin>): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writePrivateFile(file, JSON.stringify(logins));
  }
  const keyOf = (url: string): string => new URL(url).origin;
  return {
    find(url) {
      const logins = read();
      return Object.hasOwn(logins, keyOf(url)) ? logins[keyOf(url)] : undefined;
    },
    save: (url, login) => write({ ...read(), [keyOf(url)]: login }),
    remove(url) {
      const { [keyOf(url)]: removed, ...others } = read();
      if (removed) write(others);
      return removed !== undefined;
    },
  };
}
