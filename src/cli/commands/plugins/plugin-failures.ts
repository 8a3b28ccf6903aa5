import { type LogRecord, queryLogs } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import type { CommandContext } from '../../context.ts';
import { followEvents } from '../../event-stream.ts';

/**
 * Delivers a plugin's logged warnings and errors until `signal` aborts. Resolves once the stream is established. If the
 * first connection fails, prints a note and also resolves.
 */
export async function followFailures(
  pluginId: string,
  context: CommandContext,
  signal: AbortSignal,
  take: (record: LogRecord) => void,
): Promise<void> {
  const { ui } = context;
  const listening = Promise.withResolvers<void>();
  const following = followEvents(context, {
    path: queryLogs.path,
    query: { follow: '1', limit: 0, pluginId, level: 'warn' },
    signal,
    take({ data }) {
      // The first event carries only the cursor. Its arrival shows that the stream is established.
      listening.resolve();
      if (data === '') return;
      const record = JSON.parse(data) as LogRecord;
      // Services also log the failures of plugins. Only records of plugins are used, to show each failure only once.
      if (record.logsSource === 'plugin') take(record);
    },
    onLost: (why) => ui.note(`Lost the log stream of ${pluginId}: ${why}. Reconnecting.`),
    onReconnect: () => ui.note(`Reconnected to the log stream of ${pluginId}.`),
  }).catch((error: unknown) =>
    ui.note(`Failing calls are not shown: ${messageOf(error)} Use svc logs --plugin ${pluginId}.`),
  );
  await Promise.race([listening.promise, following]);
}
