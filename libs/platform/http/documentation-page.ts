/** Loaded by the first request for the page: its dependencies take a quarter of a second. */
import type { RequestListener } from 'node:http';

import helmet from '@fastify/helmet';
import scalar from '@scalar/fastify-api-reference';
import Fastify from 'fastify';

/**
 * Browsers may load the parts of the reference page from this server only, so the page works offline in any version.
 */
const CONTENT_POLICY = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'", "'unsafe-inline'"],
  styleSrc: ["'self'", "'unsafe-inline'"],
  imgSrc: ["'self'", 'data:', 'blob:'],
  fontSrc: ["'self'", 'data:'],
  connectSrc: ["'self'"],
  workerSrc: ["'self'", 'blob:'],
  baseUri: ["'self'"],
  frameAncestors: ["'none'"],
};

/**
 * Serves the page and its script only. helmet is not used for other answers: its thirteen headers concern documents,
 * and would double the cost of the headers of a JSON answer.
 */
export async function documentationPage(routePrefix: `/${string}`, title: string): Promise<RequestListener> {
  const page = Fastify();
  await page.register(helmet, { contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY } });
  await page.register(scalar, {
    routePrefix,
    configuration: {
      url: '../openapi.json',
      pageTitle: title,
      withDefaultFonts: false,
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
      showDeveloperTools: 'never',
      hideClientButton: true,
    },
  });
  await page.ready();
  return (request, response) => page.routing(request, response);
}
