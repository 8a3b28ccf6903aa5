import type { Socket } from 'node:net';
import { PlatformError } from '../../kit/errors.ts';
import { type ErrorMessage, fromErrorMessage, toErrorMessage } from '../process-protocol.ts';

/** What travels between two processes of one daemon. */
export type Frame =
  | { ask: number; topic: string; body: unknown }
  | { reply: number; body: unknown }
  | { reply: number; error: ErrorMessage };

export type Reply = { body: unknown } | { error: PlatformError };

/** What is answered for a topic. What it throws travels back as a PlatformError. `socket` came with the question. */
export type Answer<From> = (body: unknown, from: From, socket: Socket | undefined) => unknown;

export interface AskOptions {
  /** How long an answer may take; default 5 s. */
  patienceMs?: number;
  /** Handed over: from here on it is the other process's. */
  socket?: Socket;
}

/** Questions and answers over a channel between two processes; both sides may ask. */
export interface Link {
  /**
   * Calls `onReply` in the turn in which the answer arrives, before any later message is looked at: whoever keeps
   * books on what the other side said must not see two of its messages in the wrong order.
   */
  ask(topic: string, body: unknown, onReply: (reply: Reply) => void, options?: AskOptions): void;
  /** `ask` as a promise. Rejects with what the other side threw, or SERVICE_UNAVAILABLE. */
  call(topic: string, body?: unknown, options?: AskOptions): Promise<unknown>;
  receive(frame: Frame, socket?: Socket): void;
  /** Fails what is open and all that follows. */
  close(): void;
}

export interface LinkOptions<From> {
  /** False when the other side is gone. */
  send: (frame: Frame, socket?: Socket) => boolean;
  answers: ReadonlyMap<string, Answer<From>>;
  from: From;
}

const PATIENCE_MS = 5000;

export function createLink<From>({ send, answers, from }: LinkOptions<From>): Link {
  const open = new Map<number, { onReply: (reply: Reply) => void; timer: NodeJS.Timeout }>();
  let asked = 0;
  let closed = false;

  function settle(number: number, reply: Reply): void {
    const question = open.get(number);
    if (!question) return;
    open.delete(number);
    clearTimeout(question.timer);
    question.onReply(reply);
  }

  function answer({ ask, topic, body }: Extract<Frame, { ask: number }>, socket: Socket | undefined): void {
    const fail = (error: unknown): void => void send({ reply: ask, error: toErrorMessage(error) });
    try {
      const given = answers.get(topic);
      if (!given) throw new PlatformError('INTERNAL_ERROR', `No process of this service answers "${topic}".`);
      const result = given(body, from, socket);
      if (result instanceof Promise) result.then((later) => send({ reply: ask, body: later }), fail);
      else send({ reply: ask, body: result });
    } catch (error) {
      fail(error);
    }
  }

  const link: Link = {
    ask(topic, body, onReply, { patienceMs = PATIENCE_MS, socket } = {}) {
      const number = ++asked;
      const timer = setTimeout(() => settle(number, { error: gone('did not answer') }), patienceMs);
      timer.unref();
      open.set(number, { onReply, timer });
      if (closed || !send({ ask: number, topic, body }, socket)) settle(number, { error: gone('ended') });
    },
    call: (topic, body, options) =>
      new Promise((resolve, reject) => {
        const settled = (reply: Reply): void =>
          'error' in reply ? reject(reply.error) : resolve(reply.body);
        link.ask(topic, body, settled, options);
      }),
    receive(frame, socket) {
      if ('ask' in frame) answer(frame, socket);
      else settle(frame.reply, 'error' in frame ? { error: fromErrorMessage(frame.error) } : frame);
    },
    close() {
      closed = true;
      for (const number of [...open.keys()]) settle(number, { error: gone('ended') });
    },
  };
  return link;
}

function gone(how: string): PlatformError {
  return new PlatformError('SERVICE_UNAVAILABLE', `Another process of this service ${how}; try again.`, {
    headers: { 'retry-after': '1' },
  });
}
