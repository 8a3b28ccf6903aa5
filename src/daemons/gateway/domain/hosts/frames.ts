import type { z } from 'zod';
import {
  AGENT_FRAMES,
  type AgentFrame,
  type AgentFrameType,
  HOST_CLOSE,
  HOST_SOCKET,
  type PartFrame,
} from '../../../../contracts/index.ts';
import { firstIssueIn } from '../../../../kit/data/first-issue.ts';
import { resultLimitFactor } from '../../../../kit/data/json-cost.ts';
import { messageOf } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { createFrameJoiner, parseUntrusted } from '../../../../plugins/index.ts';

export type AgentFrameOf<Type extends AgentFrameType> = z.infer<(typeof AGENT_FRAMES)[Type]>;
/** Complete frame, which arrived as one message or was joined from part frames. */
export type WholeFrame = Exclude<AgentFrame, PartFrame>;

export interface FrameReaderDeps {
  clock: Clock;
  onFrame(frame: WholeFrame): void;
  /**
   * Callback that is called when the first part of a split frame arrives. `executionId` is undefined if the frame does
   * not belong to an execution.
   */
  onBegun(executionId: string | undefined): void;
  /** Callback that is called for frames of an unknown type, which newer agents might send. */
  onUnknown(type: string): void;
  /**
   * Callback that is called for an invalid message. The session must then close the socket with the close code `code`.
   */
  onFault(code: number, why: string): void;
}

export interface FrameReader {
  /** Monotonic time at which the latest part of an incomplete frame arrived. Null if no frame is incomplete. */
  readonly latestPartAt: number | null;
  /** Reads one text message of the agent. Never throws. */
  read(text: string): void;
}

/** Creates a reader for the frames of one agent. The frames are untrusted input. */
export function createFrameReader({
  clock,
  onFrame,
  onBegun,
  onUnknown,
  onFault,
}: FrameReaderDeps): FrameReader {
  const joiner = createFrameJoiner(HOST_SOCKET.agentFrameBytes);
  let latestPartAt: number | null = null;

  function take(text: string, isJoined: boolean): void {
    const read = readAgentFrame(text);
    if (read.kind === 'unknown') onUnknown(read.type);
    else if (read.kind === 'malformed') onFault(HOST_CLOSE.malformed, read.why);
    else if (read.frame.type !== 'part') onFrame(read.frame);
    else if (isJoined) onFault(HOST_CLOSE.malformed, 'a part frame inside of a part frame');
    else join(read.frame);
  }

  function join(part: PartFrame): void {
    const { index, executionId } = part;
    const joined = joiner.take(part);
    latestPartAt = joined.kind === 'more' ? clock.monotonic() : null;
    if (joined.kind === 'fault') onFault(joined.code, joined.why);
    else if (joined.kind === 'whole') take(joined.text, true);
    else if (index === 0) onBegun(executionId);
  }
  return {
    get latestPartAt() {
      return latestPartAt;
    },
    read: (text) => take(text, false),
  };
}

/**
 * Input length in characters from which the complexity limit of JSON results is derived. Equals the default maximum
 * size of a webhook body, because a result can echo the whole body.
 */
const MAX_INPUT_CHARS = 1024 * 1024;

type ReadFrame =
  | { kind: 'frame'; frame: AgentFrame }
  | { kind: 'unknown'; type: string }
  | { kind: 'malformed'; why: string };

function readAgentFrame(text: string): ReadFrame {
  let value: unknown;
  try {
    value = parseUntrusted(text, resultLimitFactor(MAX_INPUT_CHARS));
  } catch (error) {
    return { kind: 'malformed', why: messageOf(error) };
  }
  const type = (value as { type?: unknown } | null)?.type;
  if (typeof type !== 'string') return { kind: 'malformed', why: 'a frame must be an object with a "type"' };
  if (!Object.hasOwn(AGENT_FRAMES, type)) return { kind: 'unknown', type: type.slice(0, 64) };
  const parsed = AGENT_FRAMES[type as AgentFrameType].safeParse(value);
  if (parsed.success) return { kind: 'frame', frame: parsed.data };
  return { kind: 'malformed', why: firstIssueIn(parsed.error, type) };
}
