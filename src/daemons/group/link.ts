import type { Socket } from 'node:net';
import { type ErrorMessage, fromErrorMessage, toErrorMessage } from '../../kit/errors/error-message.ts';
import { PlatformError } from '../../kit/errors/errors.ts';

/** Messages between two processes of a service. */
export type Frame =
  | { ask: number; topic: string; body: unknown }
  | { reply: number; body: unknown }
  | { reply: number; error: ErrorMessage };

export type Reply = { body: unknown } | { error: PlatformError };

/**
 * Handles requests of a topic. Errors are sent back as PlatformErrors. `socket` was transferred with the
 * request.
 */
export type Answer<From> = (body: unknown, from: From, socket: Socket | undefined) => unknown;

export interface AskOptions {
  /** Time limit for the reply in ms. The default is 5 s. */
  timeoutMs?: number;
  /** A socket to transfer. This process must not use the socket afterwards. */
  socket?: Socket;
}

/** Requests and replies over a channel between two processes, in both directions. */
export interface Link {
  /**
   * Calls `onReply` in the turn in which the reply arrives, before later messages, so that state derived from
   * messages is updated in order.
   */
  ask(topic: string, body: unknown, onReply: (reply: Reply) => void, options?: AskOptions): void;
  /** Sends a request like `ask` and returns a promise. Rejects with the other side's error or SERVICE_UNAVAILABLE. */
  call(topic: string, body?: unknown, options?: AskOptions): Promise<unknown>;
  receive(frame: Frame, socket?: Socket): void;
  /** Rejects pending requests and all later requests. */
  close(): void;
}

export interface LinkOptions<From> {
  /** Returns false when the other side has ended. */
  send: (frame: Frame, socket?: Socket) => boolean;
  answers: ReadonlyMap<string, Answer<From>>;
  from: From;
}

const REPLY_TIMEOUT_MS = 5000;

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
    ask(topic, body, onReply, { timeoutMs = REPLY_TIMEOUT_MS, socket } = {}) {
      const number = ++asked;
      const timer = setTimeout(() => settle(number, { error: gone('did not answer') }), timeoutMs);
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
