import { join } from 'node:path';
import { SERVICE_NAMES, type ServiceName } from '../contracts/index.ts';
import { readOwner } from '../store/sqlite/lock-owner.ts';
import type { DataFolder } from './data-folder.ts';

/** Label of `svc start` in its lock. */
export const startLabel = (name: ServiceName): string => `svc start ${name}`;

/** Path of the lock of a service whose store is PostgreSQL. */
export const serviceLock = ({ run }: DataFolder, name: ServiceName): string => join(run, `service-${name}`);

/** Returns the services of a data folder that `svc start` runs, with their process ids. */
export function singleServices(folder: DataFolder): Array<{ name: ServiceName; pid: number }> {
  const files = [folder.ownerLock, ...SERVICE_NAMES.map((name) => serviceLock(folder, name))];
  const owners = files.map((file) => readOwner(`${file}.owner`));
  return SERVICE_NAMES.flatMap((name) => {
    const owner = owners.find((each) => each?.label === startLabel(name));
    return owner ? [{ name, pid: owner.pid }] : [];
  });
}
