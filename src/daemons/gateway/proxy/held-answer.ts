import { PlatformError } from '../../../kit/errors/errors.ts';
import { type CallEnd, jsonOf } from '../domain/audit/call-audit.ts';
import type { UpstreamHandler } from './upstream/index.ts';

/** Records the end of an audited call. Rejects if the entry cannot be stored. */
export type RecordEnd = (end: CallEnd) => Promise<void>;

/** Receives the answer once it may be sent. */
export interface AnswerSender extends UpstreamHandler {
  fail(error: PlatformError): void;
}

/** Status that is recorded if no answer arrived, as in the access log. */
const CLIENT_CLOSED_REQUEST = 499;
const BAD_GATEWAY = 502;
/** Answers of audited endpoints are small. A larger one is a fault of the service. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Holds the answer to an audited call back until its audit entry is stored. */
export class HeldAnswer implements UpstreamHandler {
  readonly #sender: AnswerSender;
  readonly #record: RecordEnd;
  readonly #requestChunks: readonly Buffer[];
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #head: { status: number; rawHeaders: readonly string[] } | undefined;
  #hasEnded = false;
  #isClientGone = false;

  /** `requestChunks` receives the request body while it is forwarded. */
  constructor(sender: AnswerSender, record: RecordEnd, requestChunks: readonly Buffer[]) {
    this.#sender = sender;
    this.#record = record;
    this.#requestChunks = requestChunks;
  }

  onHead(status: number, rawHeaders: readonly string[]): void {
    this.#head = { status, rawHeaders };
  }

  onData(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes <= MAX_BYTES) this.#chunks.push(chunk);
    else this.onError(new PlatformError('UPSTREAM_UNAVAILABLE', 'The answer of the service is too large.'));
    return true;
  }

  onEnd(): void {
    const { status, rawHeaders } = this.#head!;
    const body = Buffer.concat(this.#chunks);
    this.#end({ status, body: this.#requestBody(), reply: jsonOf(body.toString('utf8')) }, () => {
      this.#sender.onHead(status, rawHeaders);
      if (body.length > 0) this.#sender.onData(body);
      this.#sender.onEnd();
    });
  }

  onError(error: Error): void {
    const status = this.#head?.status ?? BAD_GATEWAY;
    this.#end({ status, outcome: 'unknown', body: this.#requestBody(), reply: null }, () =>
      this.#sender.onError(error),
    );
  }

  /** Records a call whose client disconnected before the answer. The service may have made the change. */
  onClientGone(): void {
    this.#isClientGone = true;
    const end = { status: CLIENT_CLOSED_REQUEST, outcome: 'unknown', reply: null } as const;
    this.#end({ ...end, body: this.#requestBody() }, () => {});
  }

  #end(end: CallEnd, send: () => void): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const unlessGone = (act: () => void): void => {
      if (!this.#isClientGone) act();
    };
    this.#record(end).then(
      () => unlessGone(send),
      (error: PlatformError) => unlessGone(() => this.#sender.fail(error)),
    );
  }

  #requestBody(): unknown {
    return jsonOf(Buffer.concat(this.#requestChunks).toString('utf8'));
  }
}
