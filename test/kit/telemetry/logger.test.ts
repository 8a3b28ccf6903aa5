import { expect, test } from 'vitest';
import { createLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { captureLogs } from '../../support/daemon.ts';

function start() {
  const output = captureLogs();
  return {
    output,
    logger: createLogger({ serviceId: 'gateway', output, clock: manualClock(1000), level: 'debug' }),
  };
}

test('a line is the log record of the spec', () => {
  const { output, logger } = start();
  logger
    .child({ tenantId: 'acme', pluginId: 'github' })
    .info('hello', { requestId: 'r1', traceId: 't1', spanId: 's1', meta: { a: 1 } });
  expect(output.lines).toEqual([
    {
      level: 'info',
      time: 1000,
      serviceId: 'gateway',
      logsSource: 'platform',
      layer: 'service',
      requestId: 'r1',
      traceId: 't1',
      spanId: 's1',
      tenantId: 'acme',
      pluginId: 'github',
      message: 'hello',
      meta: { a: 1 },
    },
  ]);
});

test('fields given twice appear once, the nearer one winning', () => {
  const output: string[] = [];
  const logger = createLogger({
    serviceId: 's',
    output: { write: (l) => output.push(l), flush: () => {} },
    clock: manualClock(),
  });
  logger.child({ logsSource: 'plugin', requestId: 'outer' }).info('x', { requestId: 'inner' });
  expect(output[0]!.match(/"logsSource"/g)).toHaveLength(1);
  expect(JSON.parse(output[0]!)).toMatchObject({ logsSource: 'plugin', requestId: 'inner' });
});

test('an access line parses whatever the client put into its ids', () => {
  const { output, logger } = start();
  logger.access('GET', '/api/v1/*', 502, 1.23456, { requestId: 'a"b\\c', traceId: 't', tenantId: '' });
  expect(output.lines[0]).toMatchObject({
    level: 'error',
    requestId: 'a"b\\c',
    message: 'GET /api/v1/* 502',
    meta: { method: 'GET', route: '/api/v1/*', status: 502, durationMs: 1.23 },
  });
});

test('a diagnostic has the fields of the spec beside those of a log line', () => {
  const { output, logger } = start();
  logger.diagnostic({
    domain: 'auth',
    event: 'auth.failed',
    level: 'warn',
    reasonCode: 'EXPIRED',
    message: 'refused',
    outcome: 'refused',
    error: new Error('why'),
    evidence: { source: '127.0.0.1' },
  });
  expect(output.lines[0]).toMatchObject({
    domain: 'auth',
    event: 'auth.failed',
    level: 'warn',
    reasonCode: 'EXPIRED',
    message: 'refused',
    outcome: 'refused',
    serviceId: 'gateway',
    error: { name: 'Error', message: 'why' },
    evidence: { source: '127.0.0.1' },
  });
});

test.each([
  [
    'a bearer token in the message',
    (l: ReturnType<typeof start>['logger'], s: string) => l.info(`Authorization: Bearer ${s}`),
  ],
  [
    'a JWT in the message',
    (l: ReturnType<typeof start>['logger'], s: string) => l.info(`got eyJhbGciOiJI.${s}.sig`),
  ],
  [
    'a header by name',
    (l: ReturnType<typeof start>['logger'], s: string) =>
      l.info('x', { meta: { headers: { Authorization: s } } }),
  ],
  [
    'a cookie',
    (l: ReturnType<typeof start>['logger'], s: string) => l.info('x', { meta: { 'set-cookie': [s] } }),
  ],
  [
    'a client secret',
    (l: ReturnType<typeof start>['logger'], s: string) =>
      l.info('x', { meta: { deep: [{ clientSecret: s }] } }),
  ],
  [
    'a token in an error',
    (l: ReturnType<typeof start>['logger'], s: string) => l.error('x', { error: new Error(`Bearer ${s}`) }),
  ],
  [
    'a cause of an error',
    (l: ReturnType<typeof start>['logger'], s: string) =>
      l.error('x', { error: new Error('a', { cause: { password: s } }) }),
  ],
  [
    'evidence of a diagnostic',
    (l: ReturnType<typeof start>['logger'], s: string) =>
      l.diagnostic({
        domain: 'd',
        event: 'e',
        level: 'info',
        reasonCode: 'R',
        message: 'm',
        outcome: 'failed',
        evidence: { accessToken: s },
      }),
  ],
])('never writes %s', (_name, log) => {
  const output: string[] = [];
  const logger = createLogger({
    serviceId: 's',
    output: { write: (l) => output.push(l), flush: () => {} },
    clock: manualClock(),
  });
  log(logger, 'hunter2hunter2');
  expect(output).toHaveLength(1);
  expect(output[0]).not.toContain('hunter2');
  expect(output[0]).toContain('[redacted]');
});

test('what cannot be printed is described, and a cycle does not hang', () => {
  const { output, logger } = start();
  const cycle: Record<string, unknown> = { big: 1n, bytes: Buffer.alloc(9) };
  cycle.self = cycle;
  logger.info('x', { meta: cycle });
  expect(JSON.stringify(output.lines[0])).toContain('[deep]');
  expect(output.lines[0]).toMatchObject({ meta: { big: '1', bytes: '[9 bytes]' } });
});
