import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { marketplace } from '../../src/daemons/marketplace/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { state } from '../../src/daemons/state/index.ts';
import { workflow } from '../../src/daemons/workflow/index.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { freePort } from '../support/ports.ts';

const PROJECT = join(import.meta.dirname, '../fixtures/projects/telemetry');
const CONFIG = join(packageRoot, 'config/prometheus.yml');
const missing = ['prometheus', 'promtool'].filter((name) => spawnSync(name, ['--version']).status !== 0);
if (missing.length > 0)
  console.warn(`${missing.join(' and ')} missing (Debian: apt-get install prometheus): its test is skipped.`);

/** The five services; the ports they have by default, and those they have here. */
async function startServices(): Promise<Map<number, number>> {
  const shared = { projectDir: PROJECT };
  const kept = await startTestDaemon(state, shared);
  const peers = createPeers({ state: kept.url });
  const api = await startTestDaemon(rest, { ...shared, peers });
  const front = await startTestDaemon(gateway, {
    ...shared,
    peers: createPeers({ rest: api.url, state: kept.url }),
    config: { gateway: { staticTokens: { t: { hostId: 'ci', namespaceId: 'default' } } } },
  });
  const runs = await startTestDaemon(workflow, { ...shared, peers });
  const market = await startTestDaemon(marketplace, { ...shared, peers });
  const headers = { authorization: 'Bearer t' };
  expect((await front.fetch('/api/v1/plugins/teller/remember', { headers })).status).toBe(200);
  return new Map([
    [gateway.defaultPort, front.port],
    [rest.defaultPort, api.port],
    [workflow.defaultPort, runs.port],
    [marketplace.defaultPort, market.port],
    [state.defaultPort, kept.port],
  ]);
}

/** A Prometheus with the file of this repository, whose ports are those of the test and whose patience is a second. */
async function startPrometheus(ports: Map<number, number>): Promise<string> {
  const folder = await tempDir();
  let text = readFileSync(CONFIG, 'utf8').replace('scrape_interval: 15s', 'scrape_interval: 1s');
  for (const [usual, port] of ports) text = text.replace(`127.0.0.1:${usual} `, `127.0.0.1:${port} `);
  await writeFile(join(folder, 'prometheus.yml'), text);
  const address = `127.0.0.1:${await freePort()}`;
  const child: ChildProcess = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: 'ignore', cwd: folder },
  );
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  return `http://${address}`;
}

interface Answer {
  status: string;
  data: {
    activeTargets: Array<{ health: string; lastError: string; scrapeUrl: string }>;
    result: Array<{ metric: Record<string, string>; value: [number, string] }>;
  };
}

test.skipIf(missing.length > 0)(
  'a Prometheus with our config finds all five services, and what the dashboard asks for',
  { timeout: 60_000 },
  async () => {
    execFileSync('promtool', ['check', 'config', CONFIG]);
    const ports = await startServices();
    const prometheus = await startPrometheus(ports);
    const ask = async (path: string): Promise<Answer> =>
      (await fetch(prometheus + path)).json() as Promise<Answer>;
    const query = (text: string) => ask(`/api/v1/query?query=${encodeURIComponent(text)}`);

    const targets = async () => {
      const { data } = await ask('/api/v1/targets?state=active').catch(
        () => ({ data: { activeTargets: [] } }) as never as Answer,
      );
      return data.activeTargets.map(({ health, lastError }) => lastError || health);
    };
    await expect.poll(targets, { timeout: 30_000, interval: 200 }).toEqual(Array(5).fill('up'));

    const { data: uptime } = await query('svc_service_uptime_seconds');
    expect(uptime.result.map(({ metric }) => metric.service).sort()).toEqual([
      'gateway',
      'marketplace',
      'rest',
      'state',
      'workflow',
    ]);
    const { data: requests } = await query(
      'sum by (service) (svc_http_requests_total{route=~".*teller.*|/api/v1/\\\\*"})',
    );
    expect(requests.result.map(({ metric }) => metric.service)).toEqual(
      expect.arrayContaining(['gateway', 'rest']),
    );

    // Every query of the dashboard is one that this Prometheus understands, about metrics that it has.
    const dashboard = readFileSync(join(packageRoot, 'config/grafana/svc.json'), 'utf8');
    const queries = [...dashboard.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(
      ([, text]) => JSON.parse(text!) as string,
    );
    expect(queries.length).toBeGreaterThan(5);
    const texts = await Promise.all(
      [...ports.values()].map(async (port) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()),
    );
    // A counter of what has not happened yet has a type and no series.
    const known = new Set(
      texts.flatMap((text) => [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name)),
    );
    for (const text of queries) {
      const concrete = text.replace(/\$__rate_interval|\$__interval/g, '1m').replace(/\$\w+/g, '.*');
      expect([text, (await query(concrete)).status]).toEqual([text, 'success']);
      for (const [name] of text.matchAll(/svc_\w+/g)) expect(known).toContain(name.replace(/_bucket$/, ''));
    }
  },
);
