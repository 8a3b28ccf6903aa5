import { X509Certificate } from 'node:crypto';

const PEM_PATH = /^\/SimpleNotificationService-[0-9a-f]{32}\.pem$/;
/** One certificate. The files of SNS contain no chain. */
const SINGLE_PEM = /^\s*-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*$/;
const MIN_MODULUS_BITS = 2048;

/** Returns whether a URL is that of a signing certificate on a certain host of SNS, in exactly the form that SNS sends. */
export function isCertificateUrl(url: string, host: string): boolean {
  const origin = `https://${host}`;
  return url.startsWith(origin) && PEM_PATH.test(url.slice(origin.length));
}

/**
 * Returns the certificate of a PEM file if SNS can have signed with it at a certain time. Checks what the validators of
 * Amazon check, and the key: the name and the dates. The issuer is not checked: the file contains no chain, and its
 * authenticity is that of the HTTPS connection to the host of SNS.
 */
export function signingCertificate(pem: string, host: string, nowMs: number): X509Certificate | undefined {
  const certificate = parse(pem);
  if (!certificate || certificate.ca) return undefined;
  const isValid = Date.parse(certificate.validFrom) <= nowMs && nowMs <= Date.parse(certificate.validTo);
  const { asymmetricKeyType, asymmetricKeyDetails } = certificate.publicKey;
  const isStrong = asymmetricKeyType === 'rsa' && asymmetricKeyDetails!.modulusLength! >= MIN_MODULUS_BITS;
  const isNamed = certificateNames(host).some((name) => certificate.checkHost(name, { wildcards: false }));
  return isValid && isStrong && isNamed ? certificate : undefined;
}

function parse(pem: string): X509Certificate | undefined {
  if (!SINGLE_PEM.test(pem)) return undefined;
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** Names of signing certificates. They differ by region, see SnsHostProvider of the AWS SDK for Java. */
function certificateNames(host: string): string[] {
  const [, region, suffix] = /^sns\.([^.]+)\.(.+)$/.exec(host)!;
  const regional = [host, `sns-signing.${region}.${suffix}`, `sns-${region}.${suffix}`];
  if (region!.startsWith('us-gov-')) return [...regional, 'sns-us-gov-west-1.amazonaws.com'];
  return region!.startsWith('cn-') ? regional : [...regional, 'sns.amazonaws.com'];
}
