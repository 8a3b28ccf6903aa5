import type { z } from 'zod';
import { AGENT_FRAMES, type AgentFrame, type AgentFrameType } from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors.ts';
import { parseUntrusted } from '../../../plugins/index.ts';

export type AgentFrameOf<Type extends AgentFrameType> = z.infer<(typeof AGENT_FRAMES)[Type]>;

/** A frame as read: one of ours, one of a type we do not know, or none at all. */
export type ReadFrame =
  | { kind: 'frame'; frame: AgentFrame }
  | { kind: 'unknown'; type: string }
  | { kind: 'malformed'; why: string };

/** Reads one text message of an agent. Never throws. */
export function readAgentFrame(text: string): ReadFrame {
  let value: unknown;
  try {
    value = parseUntrusted(text);
  } catch (error) {
    return { kind: 'malformed', why: messageOf(error) };
  }
  const type = (value as { type?: unknown } | null)?.type;
  if (typeof type !== 'string') return { kind: 'malformed', why: 'a frame is an object with a "type"' };
  if (!Object.hasOwn(AGENT_FRAMES, type)) return { kind: 'unknown', type: type.slice(0, 64) };
  const parsed = AGENT_FRAMES[type as AgentFrameType].safeParse(value);
  if (parsed.success) return { kind: 'frame', frame: parsed.data };
  const [issue] = parsed.error.issues;
  return { kind: 'malformed', why: `${type}.${issue?.path.join('.')}: ${issue?.message}` };
}
