import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface PortOwner {
  pid: number;
  command: string;
}

/**
 * Returns the process that listens on a TCP port. Returns null if the process is unknown, for example because another
 * user owns the process.
 */
export function findPortOwner(port: number): PortOwner | null {
  return (process.platform === 'linux' ? fromProc(port) : null) ?? fromLsof(port);
}

const TCP_LISTEN = '0A';

function fromProc(port: number): PortOwner | null {
  const inodes = new Set(
    ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => listeningInodes(table, port)),
  );
  if (inodes.size === 0) return null;
  for (const entry of readdirSync('/proc')) {
    if (/^\d+$/.test(entry) && holdsSocket(entry, inodes))
      return { pid: Number(entry), command: commandOf(entry) };
  }
  return null;
}

function listeningInodes(table: string, port: number): string[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  const rows = readText(table).split('\n').slice(1);
  return rows.flatMap((row) => {
    const [, local, , state, , , , , , inode] = row.trim().split(/\s+/);
    return state === TCP_LISTEN && inode && local?.endsWith(`:${hexPort}`) ? [inode] : [];
  });
}

function holdsSocket(pid: string, inodes: Set<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
      return target.startsWith('socket:[') && inodes.has(target.slice(8, -1));
    });
  } catch {
    // The process has ended or belongs to another user.
    return false;
  }
}

function commandOf(pid: string): string {
  const line = readText(`/proc/${pid}/cmdline`).split('\0').join(' ').trim();
  const command = line || readText(`/proc/${pid}/comm`).trim();
  // The process title of a supervisor does not show its project, so the folder of the supervisor is added.
  return command === 'svc supervisor' ? `${command}, started in ${folderOf(pid)}` : command;
}

function folderOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return 'a folder of another user';
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function fromLsof(port: number): PortOwner | null {
  try {
    const fields = execFileSync('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpc'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 3000,
    }).split('\n');
    const pid = Number(fields.find((field) => field.startsWith('p'))?.slice(1));
    const command = fields.find((field) => field.startsWith('c'))?.slice(1) ?? 'unknown';
    return pid > 0 ? { pid, command } : null;
  } catch {
    return null;
  }
}
