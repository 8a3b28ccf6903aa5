import { HOST_CLOSE, HOST_SOCKET, type PartFrame } from '../../../contracts/index.ts';

/**
 * Result of adding a part of a frame: more parts are needed, the frame is complete, or the part violates the protocol.
 */
export type Joined =
  | { kind: 'more' }
  | { kind: 'whole'; text: string }
  | { kind: 'fault'; code: number; why: string };

export interface FrameJoiner {
  /** Adds a part of a frame. Must not be called again after a protocol error. */
  take(part: PartFrame): Joined;
  /** Discards the received parts of a frame that the sender has abandoned. */
  drop(frame: number): void;
}

/** Reassembles the frames of an untrusted sender from their parts. Only one frame can be incomplete at a time. */
export function createFrameJoiner(maxBytes: number): FrameJoiner {
  let open: { frame: number; texts: string[]; bytes: number } | undefined;

  function take({ frame, index, last, text }: PartFrame): Joined {
    const isNext = open ? frame === open.frame && index === open.texts.length : index === 0;
    if (!isNext) return refused(`part ${index} of frame ${frame} is out of order`);
    // All parts but the last must have full size. A frame could otherwise arrive as millions of tiny messages.
    if (!last && text.length !== HOST_SOCKET.partChars)
      return refused('a part that is not the last is short');
    open ??= { frame, texts: [], bytes: 0 };
    open.texts.push(text);
    open.bytes += Buffer.byteLength(text);
    if (open.bytes > maxBytes) {
      const why = `a frame is larger than ${maxBytes} bytes`;
      return { kind: 'fault', code: HOST_CLOSE.tooLarge, why };
    }
    if (!last) return { kind: 'more' };
    const whole = open.texts.join('');
    open = undefined;
    return { kind: 'whole', text: whole };
  }

  return {
    take,
    drop(frame) {
      if (open?.frame === frame) open = undefined;
    },
  };
}

function refused(why: string): Joined {
  return { kind: 'fault', code: HOST_CLOSE.protocol, why };
}
