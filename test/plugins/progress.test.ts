import { expect, test } from 'vitest';
import { keepTenantSecret } from '../../src/kit/telemetry/redact.ts';
import { ExecutionListeners } from '../../src/plugins/services/progress.ts';

test('a secret is masked even where a long text is cut', async () => {
  const secret = 'tenant-secret-with-many-characters';
  keepTenantSecret({ namespaceId: 'acme', name: 'TOKEN' }, secret);
  const texts: Array<string | undefined> = [];
  const listeners = new ExecutionListeners();
  const listener = {
    progress: (_done: number, _total: number | undefined, message: string | undefined) =>
      void texts.push(message),
    log: (_level: string, message: string) => void texts.push(message),
  };
  const message = `${'x'.repeat(990)}${secret}`;
  await listeners.during({ executionId: 'e' }, listener, async () => {
    listeners.progress('e', 'acme', { done: 1, total: undefined, message });
    listeners.log('e', 'acme', 'info', message);
  });
  for (const text of texts) {
    expect(text).not.toContain('tenant-');
    expect(text!.length).toBeLessThanOrEqual(1000);
  }
  expect(texts).toHaveLength(2);
});
