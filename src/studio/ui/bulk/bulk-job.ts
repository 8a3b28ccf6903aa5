import { ApiError, call, type Input, type Reply } from '../../api/call.ts';

export type BulkEndpoint =
  | 'replayDeliveries'
  | 'cancelRuns'
  | 'rerunRuns'
  | 'replayMessages'
  | 'replayEndpoint'
  | 'replayMessage';
/** `replayMessage` acts on one message, so it has no such reply. */
export type BulkReply = Reply<Exclude<BulkEndpoint, 'replayMessage'>>;

/** A bulk action and what it acts on. It is stored as it is, so that it survives a reload of the page. */
export interface BulkJob {
  endpoint: BulkEndpoint;
  /** `Replay`, for buttons and questions. */
  label: string;
  /** The selection in words, for questions. */
  selection: string;
  /** The selection, as the fields of the call. */
  body?: Record<string, unknown>;
  params?: Record<string, string>;
  /** The selection of an endpoint that acts on one object: it is called for each id. */
  ids?: readonly string[];
}

/** Calls the endpoint of a job for its next batch. */
export function callBulk(
  { endpoint, params, body, ids }: BulkJob,
  fields: { dryRun?: boolean; cursor?: string; limit?: number },
): Promise<BulkReply> {
  if (ids) return callEach(endpoint, ids, fields.cursor);
  return call(endpoint, {
    params,
    body: { ...body, ...fields },
  } as Input<BulkEndpoint>) as Promise<BulkReply>;
}

const SAMPLE = 10;

/** Calls an endpoint for the next id. The cursor is the number of ids that are done; without one, nothing is called. */
async function callEach(endpoint: BulkEndpoint, ids: readonly string[], cursor?: string): Promise<BulkReply> {
  const sample = ids.slice(0, SAMPLE).map((messageId) => ({ messageId, endpointId: '' }));
  const reply = { items: [], refused: [], skipped: 0, matching: null, nextCursor: '0' };
  if (cursor === undefined) return { ...reply, matching: { count: ids.length, isComplete: true, sample } };
  const done = Number(cursor);
  const id = ids[done]!;
  const nextCursor = done + 1 < ids.length ? String(done + 1) : null;
  try {
    await call(endpoint, { params: { id } } as Input<BulkEndpoint>);
    return { ...reply, items: [{ messageId: id, endpointId: '' }], nextCursor };
  } catch (error) {
    // Without an answer, the action stops and can be continued.
    if (!(error instanceof ApiError) || [0, 401, 403, 429].includes(error.status)) throw error;
    const { code, message } = error;
    return { ...reply, refused: [{ messageId: id, error: { code, message } as never }], nextCursor };
  }
}
