import type {
  DueDelivery,
  EndedAttempt,
  MessageStore,
  NewStoredMessage,
  StoredMessageResult,
} from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import { MessageLists } from './lists.ts';
import { type DueRow, dueOf, type KeyRow, messageStatements } from './statements.ts';

/** Messages in `svc.db`. Concurrent calls share a transaction. @spec docs/messages.md */
export function sqliteMessages(db: Database): MessageStore {
  const sql = messageStatements(db);
  const lists = new MessageLists(db);

  /** Returns the earlier message with the same key. */
  function earlier({ createdAt, key }: NewStoredMessage): StoredMessageResult | undefined {
    const known = key && (sql.key.get({ digest: key.digest, now: createdAt }) as KeyRow | undefined);
    if (!known) return undefined;
    const { messageId: id, timestamp, endpoints } = known;
    const outcome = Buffer.compare(known.content, key.content) === 0 ? 'duplicate' : 'conflict';
    return { outcome, id, timestamp: timestamp ?? 0, endpoints };
  }

  function insert(message: NewStoredMessage): void {
    const { endpointIds, key, body, ...row } = message;
    sql.addMessage.run({ ...row, bodyBytes: body.byteLength, body });
    const { id: messageId, namespaceId } = message;
    for (const endpointId of endpointIds) sql.addDelivery.run({ messageId, endpointId, namespaceId });
    if (key) sql.setKey.run({ ...key, messageId });
  }

  function end(attempt: EndedAttempt): void {
    sql.addAttempt.run({ ...attempt, succeeded: Number(attempt.succeeded) });
    sql.end.run({ ...attempt, succeeded: Number(attempt.succeeded) });
  }

  return {
    publish: (message) =>
      db.write(() => {
        const known = earlier(message);
        if (known) return known;
        insert(message);
        const { id, timestamp, endpointIds } = message;
        return { outcome: 'stored' as const, id, timestamp, endpoints: endpointIds.length };
      }),
    addTest: (message, attempt) =>
      db.write(() => {
        insert(message);
        end(attempt);
      }),
    endAttempts: (ends, failures) =>
      db.write(() => {
        for (const ended of ends) end(ended);
        for (const change of failures) sql.setFailing.run(change);
      }),
    work: () => db.read(() => sql.work.all()),
    countUnfinished: (max) => db.read(() => sql.countUnfinished.get({ max })!),
    waiting: (endpointId, limit) => db.read(() => sql.waiting.all({ endpointId, limit }).map(dueOf)),
    retries: (endpointId, now, limit) =>
      db.read(() => sql.retries.all({ endpointId, now, limit }).map(dueOf)),
    nextRetryAt: (endpointId, after) => db.read(() => sql.nextRetryAt.get({ endpointId, after }) ?? null),
    contents: (ids) => db.read(() => sql.contents.all(JSON.stringify(ids))),
    endUnfinished: (endpointId, { limit, ...end }) =>
      db.write(() => {
        const rows = sql.unfinished.all({ endpointId, limit });
        for (const messageId of rows) sql.endUnfinished.run({ ...end, endpointId, messageId });
        return rows.length;
      }),
    list: (filter) => db.read(() => lists.list(filter)),
    find: (namespaceId, id) => db.read(() => lists.find(namespaceId, id)),
    attempts: (filter) => db.read(() => lists.attempts(filter)),
    replayable: (selection) => db.read(() => lists.replayable(selection)),
    replay: (namespaceId, deliveries, { endedUntil, add }) =>
      db.write(() => {
        const changed: DueDelivery[] = [];
        for (const delivery of deliveries) {
          const values = { ...delivery, namespaceId };
          const row: DueRow | undefined =
            sql.replay.get({ ...values, endedUntil }) ??
            (add && sql.isMessage.get({ namespaceId, id: delivery.messageId })
              ? sql.addReplay.get(values)
              : undefined);
          if (row) changed.push(dueOf(row));
        }
        return changed;
      }),
    deadSince: (since, limit) => db.read(() => sql.deadSince.all({ since, limit })),
    prune: (before, after, limit) =>
      db.write(() => {
        const examined = sql.old.all({ before, after, limit });
        const done = examined.filter(({ isOpen }) => isOpen === 0);
        for (const { id } of done) for (const remove of sql.remove) remove.run({ id });
        return { pruned: done.length, next: examined.length < limit ? null : examined.at(-1)!.id };
      }),
    pruneKeys: (now, limit) => db.write(() => sql.pruneKeys.run({ now, limit }).changes),
  };
}
