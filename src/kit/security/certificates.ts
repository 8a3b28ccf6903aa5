import { X509Certificate } from 'node:crypto';

const END = /(?<=-----END CERTIFICATE-----)/;

/** Describes the first certificate of a PEM text that cannot be read. Returns undefined if all can be read. */
export function certificateFault(pem: string): string | undefined {
  const blocks = pem.split(END).filter((block) => block.trim() !== '');
  const faulty = blocks.findIndex((block) => !isReadable(block));
  if (faulty < 0) return undefined;
  return `must be certificates in PEM form; certificate ${faulty + 1} of ${blocks.length} cannot be read`;
}

function isReadable(block: string): boolean {
  try {
    new X509Certificate(block);
    return true;
  } catch {
    return false;
  }
}
