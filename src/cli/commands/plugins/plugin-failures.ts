import { type LogRecord, queryLogs } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors.ts';
import type { CommandContext } from '../../context.ts';
import { followEvents } from '../../event-stream.ts';

/**
 * Hands on what a plugin's code logs as a warning or worse until `signal` fires: failed calls, with the stack. Resolves once
 * the first answer is there, so that no later failure is missed.
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
      // The first event is the place alone.
      listening.resolve();
      if (data === '') return;
      const record = JSON.parse(data) as LogRecord;
      // Services tell of the same failure in lines of their own.
      if (record.logsSource === 'plugin') take(record);
    },
    lost: (why) => ui.note(`The log of ${pluginId} cannot be followed: ${why}. Trying again.`),
    back: () => ui.note(`The log of ${pluginId} is followed again.`),
  }).catch((error: unknown) =>
    ui.note(`Failing calls are not shown here: ${messageOf(error)} svc logs --plugin ${pluginId} has them.`),
  );
  await Promise.race([listening.promise, following]);
}
