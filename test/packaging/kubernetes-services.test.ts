import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { SERVICE_NAMES, type ServiceName } from '../../src/contracts/index.ts';
import { entryFile } from '../../src/kit/files/paths.ts';
import type { AnyJson } from '../support/any-json.ts';
import { atEnd } from '../support/at-end.ts';
import { tempDir } from '../support/daemon.ts';
import { configOf } from '../support/dockerfile.ts';
import { findManifest } from '../support/kubernetes.ts';
import { POSTGRES_PROGRAMS, PostgresServer } from '../support/postgres.ts';
import { SingleServiceProcess } from '../support/single-service.ts';

const POLL = { timeout: 120_000, interval: 250 };
const HAS_NETWORKS = spawnSync('unshare', ['--net', 'true']).status === 0;

/** Addresses of the pods, in a network of their own. */
const POD_IPS = Object.fromEntries(SERVICE_NAMES.map((name, index) => [name, `10.244.1.${index + 10}`]));

/** The secrets of the manifest, with values where it has none. */
const SECRETS: Record<string, string> = Object.fromEntries(
  Object.entries<string>(findManifest('Secret', 'svc').stringData).map(([name, value]) => [
    name,
    value || Buffer.alloc(32, name).toString('base64url'),
  ]),
);

/** Starts a network with the addresses of the pods. Returns the words that run a program in it. */
async function podNetwork(): Promise<string[]> {
  const addresses = Object.values(POD_IPS).map((ip) => `ip addr add ${ip}/32 dev lo`);
  const script = ['ip link set lo up', ...addresses, 'echo up', 'exec sleep 1000'].join(' && ');
  const holder = spawn('unshare', ['--net', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  atEnd(() => void holder.kill('SIGKILL'));
  await new Promise((resolve) => holder.stdout!.once('data', resolve));
  return ['nsenter', `--net=/proc/${holder.pid}/ns/net`, '--'];
}

/** Starts PostgreSQL with the user and database of the manifest. It is at 127.0.0.1:5432 in the network. */
async function startDatabase(network: readonly string[]): Promise<void> {
  const server = await PostgresServer.start();
  atEnd(() => server.remove());
  await server.run('create role svc login');
  await server.run('create database svc owner svc');
  const { rows } = await server.run('show unix_socket_directories');
  const socket = join(rows[0].unix_socket_directories, `.s.PGSQL.${server.address.port}`);
  const script = `require('node:net').createServer((client) => {
    const database = require('node:net').connect(${JSON.stringify(socket)});
    for (const each of [client, database]) each.on('error', () => { client.destroy(); database.destroy(); });
    client.pipe(database).pipe(client);
  }).listen(5432, '127.0.0.1', () => console.log('up'))`;
  const [command, ...words] = [...network, process.execPath, '-e', script];
  const forwarder: ChildProcess = spawn(command!, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  atEnd(() => void forwarder.kill('SIGKILL'));
  await new Promise((resolve) => forwarder.stdout!.once('data', resolve));
}

/** Creates the project of the image with the config of the manifest. Only the host of the database differs. */
async function project(): Promise<string> {
  const folder = join(await tempDir(), 'project');
  await mkdir(join(folder, 'plugins'), { recursive: true });
  const config: string = findManifest('ConfigMap', 'svc-config').data['svc.config.json'];
  await writeFile(join(folder, 'svc.config.json'), config.replace('@postgres:5432', '@127.0.0.1:5432'));
  return folder;
}

/**
 * Returns the environment of a container: the variables of the image, then those of its manifest. Only the data folder
 * differs, because a volume is mounted on the one of the image.
 */
async function environmentOf(
  container: AnyJson,
  pod: { name: string; ip: string },
): Promise<NodeJS.ProcessEnv> {
  const image = configOf('service').flatMap((line) => (line.startsWith('ENV ') ? [line.slice(4)] : []));
  const fields: Record<string, string> = { 'metadata.name': pod.name, 'status.podIP': pod.ip };
  const env: Record<string, string> = Object.fromEntries(
    image.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  );
  for (const { secretRef, configMapRef } of container.envFrom)
    Object.assign(env, secretRef ? SECRETS : findManifest('ConfigMap', configMapRef.name).data);
  for (const { name, value, valueFrom } of container.env ?? []) {
    const text = valueFrom ? fields[valueFrom.fieldRef.fieldPath]! : value;
    env[name] = text.replace(/\$\((\w+)\)/g, (_: string, other: string) => env[other]!);
  }
  return { ...env, SVC_HOME: join(await tempDir(), 'data') };
}

describe.skipIf(!POSTGRES_PROGRAMS || !HAS_NETWORKS)(
  'services with the environment of their manifests',
  () => {
    test('migrate, become ready at their probes, work together and stop', { timeout: 400_000 }, async () => {
      const network = await podNetwork();
      await startDatabase(network);
      const folder = await project();
      const [migrate] = findManifest('Job', 'svc-migrate').spec.template.spec.containers;
      const [, ...migrateWords] = migrate.command;
      const run = async (words: readonly string[], env?: NodeJS.ProcessEnv) => {
        const [command, ...args] = [...network, ...words];
        const { stdout } = await promisify(execFile)(command!, args, {
          cwd: folder,
          env: { ...process.env, ...env },
        });
        return stdout;
      };
      const env = await environmentOf(migrate, { name: 'svc-migrate', ip: '' });
      await run([process.execPath, entryFile('cli'), ...migrateWords], env);

      const containerOf = (name: ServiceName) =>
        findManifest('Deployment', `svc-${name}`).spec.template.spec.containers[0];
      const started = SERVICE_NAMES.map(async (name) => {
        const container = containerOf(name);
        const [service, ...args] = container.args;
        const pod = { name: `svc-${name}-0`, ip: POD_IPS[name]! };
        const options = { project: folder, args, env: await environmentOf(container, pod), prefix: network };
        return [name, new SingleServiceProcess(service, options)] as const;
      });
      const services = await Promise.all(started);
      const curl = (url: string, ...words: string[]) =>
        run(['curl', '--silent', '--write-out', '\n%{http_code}', ...words, url]);
      const statusOf = async (url: string) => (await curl(url)).split('\n').at(-1);
      for (const [name, service] of services) {
        const { ports, livenessProbe, readinessProbe } = containerOf(name);
        for (const { httpGet } of [livenessProbe, readinessProbe]) {
          const { containerPort } = ports.find((port: AnyJson) => port.name === httpGet.port);
          const probe = () => statusOf(`http://${POD_IPS[name]}:${containerPort}${httpGet.path}`);
          await expect.poll(probe, POLL).toBe('200');
        }
        expect(service.stderr).toBe('');
      }

      const gateway = `http://${POD_IPS.gateway}:4000`;
      const json = ['--header', 'content-type: application/json', '--data'];
      const client = {
        clientId: SECRETS.SVC_OPERATOR_CLIENT_ID,
        clientSecret: SECRETS.SVC_OPERATOR_CLIENT_SECRET,
      };
      const [token] = (await curl(`${gateway}/auth/token`, ...json, JSON.stringify(client))).split('\n');
      const bearer = ['--header', `authorization: Bearer ${JSON.parse(token!).accessToken}`];
      for (const path of ['/api/v1/marketplace/plugins', '/api/v1/workflows/runs', '/api/v1/logs']) {
        const status = async () => (await curl(`${gateway}${path}`, ...bearer)).split('\n').at(-1);
        await expect.poll(status, POLL).toBe('200');
      }
      for (const [, service] of services) service.child.kill('SIGTERM');
      for (const [, service] of services) expect(await service.exited).toEqual({ code: 0, signal: null });
    });
  },
);
