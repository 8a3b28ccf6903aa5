import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceName } from '../../../contracts/index.ts';
import { codeOf } from '../../../kit/errors/errors.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';

/**
 * File that exists while a service runs without a supervisor. If the next process finds the file, its predecessor
 * crashed. The file contains the id of the machine's boot, because a restart of the machine is not a crash.
 */
export class CrashMarker {
  /** Whether the previous process crashed. */
  readonly hadFault: boolean;
  readonly #file: string;

  private constructor(file: string, hadFault: boolean) {
    this.#file = file;
    this.hadFault = hadFault;
  }

  static place({ run }: DataFolder, name: ServiceName): CrashMarker {
    const file = join(run, `running-${name}`);
    const bootId = machineBootId();
    const marker = new CrashMarker(file, read(file) === bootId);
    writeFileSync(file, bootId, { mode: 0o600 });
    return marker;
  }

  /** Call this after an orderly stop. */
  remove(): void {
    rmSync(this.#file, { force: true });
  }
}

/** Returns an id that changes with each boot of the machine. The id is constant on systems other than Linux. */
function machineBootId(): string {
  return read('/proc/sys/kernel/random/boot_id') ?? 'unknown';
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
