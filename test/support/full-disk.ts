import { closeSync, constants, openSync, readdirSync, readlinkSync } from 'node:fs';

/**
 * Makes every write to a file that this process has open fail as on a full disk, until the returned function is called.
 * Linux: the file's descriptor becomes one of `/dev/full`, and then of the file again.
 */
export function fillDisk(file: string): () => void {
  const descriptor = readdirSync('/proc/self/fd').find((name) => linkOf(name) === file);
  if (descriptor === undefined) throw new Error(`${file} is not open`);
  const fd = Number(descriptor);
  turnInto(fd, '/dev/full');
  return () => turnInto(fd, file);
}

/** In one turn, so that nobody else gets the number: it is the lowest that is free once those below it are taken. */
function turnInto(fd: number, file: string): void {
  closeSync(fd);
  const below: number[] = [];
  for (;;) {
    const opened = openSync(file, constants.O_RDWR);
    if (opened === fd) break;
    below.push(opened);
  }
  for (const each of below) closeSync(each);
}

function linkOf(name: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${name}`);
  } catch {
    return undefined;
  }
}
