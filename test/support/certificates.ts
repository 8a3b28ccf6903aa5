import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { tempDir } from './daemon.ts';

const run = promisify(execFile);

export interface Certificate {
  key: string;
  cert: string;
  /** PEM file of the certificate. */
  file: string;
}

/** Makes a self-signed certificate, which is its own authority. It is valid from now for a number of days. */
export async function selfSigned(days: number, name = 'localhost'): Promise<Certificate> {
  const folder = await tempDir();
  const [key, file] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', file, '-days', String(days)],
    ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name},IP:127.0.0.1`],
  ]);
  return { key: await readFile(key, 'utf8'), cert: await readFile(file, 'utf8'), file };
}
