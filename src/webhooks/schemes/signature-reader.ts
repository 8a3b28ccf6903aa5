import type { SignatureAuth } from '../../contracts/index.ts';
import { decode } from './encoding.ts';
import { splitList } from './list.ts';
import { isMissing, type Place, placeOf } from './place.ts';
import type { Claim } from './scheme.ts';
import type { SignatureFault, SignedRequest } from './signed-request.ts';
import { Template } from './template.ts';
import { ageOf } from './timestamp.ts';

/** Maximum number of signatures in a request. Each signature costs a comparison. */
const MAX_SIGNATURES = 16;

/** Signatures as texts, and the parameters beside them. */
interface Texts {
  signatures: readonly string[];
  params?: ReadonlyMap<string, string | null> | undefined;
  fault?: SignatureFault | undefined;
}

const NONE: readonly Buffer[] = [];

/** Reads the signatures and the signed bytes of a request, as a declaration describes them. */
export class SignatureReader {
  readonly #auth: SignatureAuth;
  readonly #place: Place;
  readonly #alternatives: readonly Place[];
  readonly #template: Template;
  readonly #timestamp: Place | undefined;
  readonly #id: Place | undefined;
  readonly #lengths: readonly [min: number, max: number];

  /** `lengths` is the range of a signature's length in bytes. */
  constructor(auth: SignatureAuth, lengths: readonly [min: number, max: number]) {
    const { signature, timestamp, id } = auth;
    this.#auth = auth;
    this.#place = placeOf(signature);
    this.#alternatives = (signature.alternatives ?? []).map(placeOf);
    this.#template = new Template(auth.signed);
    this.#timestamp = timestamp && timestamp.param === undefined ? placeOf(timestamp) : undefined;
    this.#id = id && placeOf(id);
    this.#lengths = lengths;
  }

  isUsedBy(request: SignedRequest): boolean {
    return [this.#place, ...this.#alternatives].some((place) => !isMissing(place.read(request).fault));
  }

  read(request: SignedRequest, nowMs: number): Claim {
    const texts = this.#texts(request);
    const decoded = texts.fault ? texts.fault : this.#decoded(texts.signatures);
    const id = this.#id?.read(request);
    const timestamp = this.#timestampIn(request, texts);
    const values = { timestamp: timestamp ?? '', id: id?.text ?? '', params: texts.params };
    const { message, fault } = this.#template.message(request, values);
    const idFault = id && (id.fault ?? (id.text === '' ? 'header_missing' : undefined));
    if (typeof decoded === 'string') return { signatures: NONE, message, fault: decoded };
    if (idFault ?? fault) return { signatures: decoded, message, fault: idFault ?? fault };
    return { signatures: decoded, message, ...this.#age(timestamp, nowMs) };
  }

  /** Returns the timestamp as sent. */
  timestampText(request: SignedRequest): string | undefined {
    return this.#timestampIn(request, this.#texts(request));
  }

  #texts(request: SignedRequest): Texts {
    const first = this.#textsAt(this.#place, request);
    if (this.#alternatives.length === 0) return first;
    const all = [first, ...this.#alternatives.map((place) => this.#textsAt(place, request))];
    const sent = all.filter(({ fault }) => !isMissing(fault));
    if (sent.length === 0) return first;
    const fault = sent.find((texts) => texts.fault)?.fault;
    return { signatures: sent.flatMap(({ signatures }) => signatures), fault };
  }

  #textsAt(place: Place, request: SignedRequest): Texts {
    const sent = place.read(request);
    if (sent.text === undefined) return { signatures: [], fault: sent.fault };
    const { prefix, format } = this.#auth.signature;
    if (!sent.text.startsWith(prefix)) return { signatures: [], fault: 'prefix_missing' };
    const text = prefix === '' ? sent.text : sent.text.slice(prefix.length);
    return format === 'plain'
      ? { signatures: [text] }
      : (splitList(text, format) ?? { signatures: [], fault: 'encoding' });
  }

  /** Returns a fault if there is no signature, if there are too many, or if one is malformed. */
  #decoded(texts: readonly string[]): Buffer[] | SignatureFault {
    if (texts.length === 0) return 'prefix_missing';
    if (texts.length > MAX_SIGNATURES) return 'encoding';
    const { encoding } = this.#auth.signature;
    const [min, max] = this.#lengths;
    const signatures: Buffer[] = [];
    for (const text of texts) {
      const bytes = decode(text, encoding);
      if (!bytes || bytes.length < min || bytes.length > max) return 'encoding';
      signatures.push(bytes);
    }
    return signatures;
  }

  #timestampIn(request: SignedRequest, { params }: Texts): string | undefined {
    const { timestamp } = this.#auth;
    if (timestamp?.param !== undefined) return params?.get(timestamp.param) ?? undefined;
    return this.#timestamp?.read(request).text;
  }

  #age(text: string | undefined, nowMs: number): Pick<Claim, 'fault' | 'skewSeconds'> {
    const { timestamp } = this.#auth;
    return timestamp ? ageOf(text, timestamp.unit, nowMs, timestamp.toleranceSeconds) : {};
  }
}
