// A link may carry the token behind the #, which no server and no log ever sees.
const secret = location.hash.slice(1);
if (secret) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("token").value = decodeURIComponent(secret);
  document.getElementById("login").requestSubmit();
}
