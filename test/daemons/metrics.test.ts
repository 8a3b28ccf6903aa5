import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { marketplace } from '../../src/daemons/marketplace/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { state } from '../../src/daemons/state/index.ts';
import { workflow } from '../../src/daemons/workflow/index.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { boundedLabel } from '../../src/kit/telemetry/metrics.ts';
import { startTestDaemon } from '../support/daemon.ts';

const PROJECT = join(import.meta.dirname, '../fixtures/projects/telemetry');
const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
if (!hasPromtool)
  console.warn('promtool is missing (Debian: apt-get install prometheus): its checks are skipped.');

/** The metrics of every daemon, after a call of a handler through the gateway. */
async function scrape(): Promise<Record<string, string>> {
  const shared = { projectDir: PROJECT };
  const kept = await startTestDaemon(state, shared);
  const peers = createPeers({ state: kept.url });
  const api = await startTestDaemon(rest, { ...shared, peers });
  const front = await startTestDaemon(gateway, {
    ...shared,
    peers: createPeers({ rest: api.url, state: kept.url }),
    config: { gateway: { staticTokens: { t: { hostId: 'ci', namespaceId: 'default' } } } },
  });
  const others = {
    workflow: await startTestDaemon(workflow, { ...shared, peers }),
    marketplace: await startTestDaemon(marketplace, { ...shared, peers }),
  };
  const headers = { authorization: 'Bearer t' };
  expect((await front.fetch('/api/v1/plugins/teller/remember', { headers })).status).toBe(200);
  expect((await front.fetch('/api/v1/plugins/teller/throw', { headers, method: 'POST' })).status).toBe(500);
  expect((await front.fetch('/api/v1/x')).status).toBe(401);
  const daemons = { gateway: front, rest: api, state: kept, ...others };
  const texts: Record<string, string> = {};
  for (const [name, daemon] of Object.entries(daemons))
    texts[name] = await (await daemon.fetch('/metrics')).text();
  return texts;
}

/** Everything is started once; the tests read what it said. */
describe('metrics of all five services', () => {
  let texts: Record<string, string>;
  // Inside a test, as the helper's clean-up belongs to one.
  test('have the names and labels of the specification, and help texts', async () => {
    texts = await scrape();
    const everywhere = [
      'svc_service_uptime_seconds',
      'svc_http_requests_total',
      'svc_http_request_duration_ms',
      'svc_process_cpu_seconds_total',
      'svc_process_memory_rss_bytes',
      'svc_event_loop_lag_seconds',
    ];
    const own: Record<string, string[]> = {
      gateway: [
        'svc_gateway_upstream_requests_total',
        'svc_gateway_webhook_deliveries_total',
        'svc_gateway_webhook_async_deliveries',
        'svc_gateway_inbox_waiting_bytes',
        'svc_gateway_connected_hosts',
        'svc_store_bytes',
      ],
      rest: [
        'svc_rest_domain_operation_total',
        'svc_rest_domain_operation_duration_ms',
        'svc_plugin_executions_total',
        'svc_plugin_execution_duration_ms',
        'svc_plugin_processes',
        'svc_plugin_calls_running',
        'svc_plugin_calls_queued',
        'svc_telemetry_records_total',
      ],
      workflow: [
        'svc_workflow_runs_total',
        'svc_workflow_run_duration_seconds',
        'svc_workflow_jobs_in_flight',
        'svc_store_bytes',
      ],
      state: ['svc_store_bytes'],
      marketplace: [],
    };
    for (const [name, text] of Object.entries(texts)) {
      for (const metric of [...everywhere, ...own[name]!])
        expect(text, `${name} ${metric}`).toMatch(new RegExp(`^# HELP ${metric} \\S`, 'm'));
    }
    expect(texts.rest).toContain(
      'svc_plugin_executions_total{service="rest",plugin="@acme/teller",host="rest",outcome="failed"} 1',
    );
    expect(texts.rest).toContain('svc_plugin_processes{service="rest",plugin="@acme/teller"}');
    expect(texts.gateway).toMatch(/^svc_store_bytes\{service="gateway",file="svc\.db"\} [1-9]/m);
    // Raw paths never become labels.
    expect(texts.gateway).not.toContain('teller/remember');
    for (const text of Object.values(texts)) expect(text).not.toMatch(/\bNaN\b|undefined/);

    const dashboard = readFileSync(join(packageRoot, 'config/grafana/svc.json'), 'utf8');
    const all = Object.values(texts).join('\n');
    for (const [, name] of dashboard.matchAll(/\b(svc_\w+?)(?:_bucket)?[[{)("]/g))
      expect(all, `the dashboard asks for ${name}`).toContain(`# HELP ${name} `);

    if (!hasPromtool) return;
    for (const [name, input] of Object.entries(texts)) {
      const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
      expect(faultsOf(stderr), name).toEqual([]);
      expect([0, 3]).toContain(status);
    }
  });
});

/** What promtool complains of, but for the unit that a name of the specification prescribes (`_ms`), and those beside it. */
function faultsOf(stderr: string): string[] {
  return stderr
    .split('\n')
    .filter(
      (line) =>
        line !== '' && !/^svc_\w+_duration_ms metric names should not contain abbreviated units$/.test(line),
    );
}

test.skipIf(!hasPromtool)('config/prometheus.yml is accepted by Prometheus', () => {
  const out = execFileSync('promtool', ['check', 'config', join(packageRoot, 'config/prometheus.yml')]);
  expect(out.toString()).toContain('SUCCESS');
});

test('a label set by callers has bounded cardinality', () => {
  const label = boundedLabel(2);
  expect(['a', 'b', 'c', 'a', 'd'].map(label)).toEqual(['a', 'b', '(others)', 'a', '(others)']);
});
