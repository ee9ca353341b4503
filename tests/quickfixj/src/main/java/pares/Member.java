package pares;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.EdECPrivateKeySpec;
import java.security.spec.NamedParameterSpec;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import quickfix.*;
import quickfix.field.*;
import quickfix.fix44.MarketDataRequest;
import quickfix.fix44.NewOrderSingle;
import quickfix.fix44.TradeCaptureReportRequest;

/**
 * A member that enters orders by QuickFIX/J and says what it is told, a line each. It knows nothing of the exchange but
 * the addresses of its gateways: who is dead, where to go on and what to send again is the engine's affair.
 *
 * <pre>
 *   Member STORE KEYFILE SENDER SYMBOL HOST:PORT HOST:PORT ...     commands come as lines:
 *   order NAME SIDE QUANTITY PRICE      enters one
 *   market ID                           asks for the symbol's book and trades, and for what changes
 *   trades ID                           asks for all its trades that were
 *   end                                 logs out and ends
 * </pre>
 */
public final class Member implements Application {
    private final CountDownLatch loggedOn = new CountDownLatch(1);
    private final PrivateKey key;
    /** Their addresses, in the order of their numbers. */
    private final List<String> gateways;

    private Member(PrivateKey key, List<String> gateways) {
        this.key = key;
        this.gateways = gateways;
    }

    public static void main(String[] args) throws Exception {
        SessionID id = new SessionID("FIX.4.4", args[2], "PARES");
        SessionSettings settings = settings(id, args);
        Member member = new Member(key(Path.of(args[1])), List.of(args).subList(4, args.length));
        SocketInitiator initiator = new SocketInitiator(
            member, new FileStoreFactory(settings), settings, new SilentLogFactory(), new DefaultMessageFactory());
        initiator.start();
        if (!member.loggedOn.await(30, TimeUnit.SECONDS)) {
            say("nobody answers");
            System.exit(1);
        }
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("end"); line = commands.readLine()) {
            String[] words = line.split(" ");
            Message message = switch (words[0]) {
                case "market" -> marketData(words[1], args[3]);
                case "trades" -> new TradeCaptureReportRequest(
                    new TradeRequestID(words[1]), new TradeRequestType(TradeRequestType.ALL_TRADES));
                default -> order(words, args[3]);
            };
            Session.sendToTarget(message, id);
        }
        initiator.stop();
    }

    private static NewOrderSingle order(String[] words, String symbol) {
        NewOrderSingle order = new NewOrderSingle(
            new ClOrdID(words[1]), new Side(words[2].charAt(0)), new TransactTime(), new OrdType(OrdType.LIMIT));
        order.set(new Symbol(symbol));
        order.set(new OrderQty(Double.parseDouble(words[3])));
        order.setString(Price.FIELD, words[4]);
        return order;
    }

    /** The last word of a file as {@code pares admin member add} writes it is the key pair's seed. */
    private static PrivateKey key(Path file) throws Exception {
        String[] words = Files.readString(file).trim().split("\\s+");
        byte[] seed = HexFormat.of().parseHex(words[words.length - 1]);
        return KeyFactory.getInstance("Ed25519").generatePrivate(
            new EdECPrivateKeySpec(NamedParameterSpec.ED25519, seed));
    }

    /** Proves with the Logon who sends it, to the gateway that is called: docs/protocols/fix.md, Log on. */
    private void sign(Message logon, SessionID id) throws GeneralSecurityException {
        logon.getHeader().setInt(TargetSubID.FIELD, gateway(id));
        StringBuilder message = new StringBuilder();
        for (String field : logon.toString().split("\u0001")) {
            if (!field.startsWith("9=") && !field.startsWith("10=")) {
                message.append(field).append('\u0001');
            }
        }
        Signature signature = Signature.getInstance("Ed25519");
        signature.initSign(key);
        signature.update(message.toString().getBytes(StandardCharsets.US_ASCII));
        String proof = HexFormat.of().formatHex(signature.sign());
        logon.setInt(RawDataLength.FIELD, proof.length());
        logon.setString(RawData.FIELD, proof);
    }

    /** The number of the gateway that the engine has connected to. */
    private int gateway(SessionID id) {
        String address = Session.lookupSession(id).getRemoteAddress();
        return gateways.indexOf(address.substring(address.lastIndexOf('/') + 1));
    }

    private static MarketDataRequest marketData(String name, String symbol) {
        MarketDataRequest request = new MarketDataRequest(
            new MDReqID(name), new SubscriptionRequestType('1'), new MarketDepth(0));
        request.set(new MDUpdateType(1));
        for (char type : new char[] {'0', '1', '2'}) {
            MarketDataRequest.NoMDEntryTypes types = new MarketDataRequest.NoMDEntryTypes();
            types.set(new MDEntryType(type));
            request.addGroup(types);
        }
        MarketDataRequest.NoRelatedSym symbols = new MarketDataRequest.NoRelatedSym();
        symbols.set(new Symbol(symbol));
        request.addGroup(symbols);
        return request;
    }

    private static SessionSettings settings(SessionID id, String[] args) {
        SessionSettings settings = new SessionSettings();
        settings.setString("ConnectionType", "initiator");
        settings.setString("FileStorePath", args[0]);
        settings.setString("StartTime", "00:00:00");
        settings.setString("EndTime", "00:00:00");
        settings.setString("HeartBtInt", "5");
        settings.setString("ReconnectInterval", "1");
        settings.setString("UseDataDictionary", "Y");
        settings.setString("DataDictionary", "FIX44.xml");
        for (int number = 0; number + 4 < args.length; number++) {
            String[] address = args[number + 4].split(":");
            String suffix = number == 0 ? "" : Integer.toString(number);
            settings.setString(id, "SocketConnectHost" + suffix, address[0]);
            settings.setString(id, "SocketConnectPort" + suffix, address[1]);
        }
        settings.setString(id, "BeginString", id.getBeginString());
        settings.setString(id, "SenderCompID", id.getSenderCompID());
        settings.setString(id, "TargetCompID", id.getTargetCompID());
        return settings;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static String field(Message message, int tag) throws FieldNotFound {
        FieldMap where = message.isSetField(tag) ? message : message.getHeader();
        return where.isSetField(tag) ? where.getString(tag) : "-";
    }

    @Override
    public void onCreate(SessionID id) {}

    @Override
    public void onLogon(SessionID id) {
        say("on");
        loggedOn.countDown();
    }

    @Override
    public void onLogout(SessionID id) {
        say("off");
    }

    @Override
    public void toAdmin(Message message, SessionID id) {
        try {
            if (MsgType.LOGON.equals(message.getHeader().getString(MsgType.FIELD))) {
                sign(message, id);
            }
        } catch (FieldNotFound | GeneralSecurityException error) {
            say("error " + error);
        }
        say("sends " + message.toString().replace('\u0001', '|'));
    }

    @Override
    public void fromAdmin(Message message, SessionID id) {
        say("gets " + message.toString().replace('\u0001', '|'));
    }

    @Override
    public void toApp(Message message, SessionID id) {
        if (message instanceof quickfix.fix44.BusinessMessageReject) {
            say("sends " + message.toString().replace('\u0001', '|'));
        }
    }

    /** Whose order traded, under which name, as the dictionary's groups have it. */
    private static String trade(Message report) throws FieldNotFound {
        Group side = report.getGroup(1, NoSides.FIELD);
        Group party = side.getGroup(1, NoPartyIDs.FIELD);
        return String.join(" ", "trade", field(report, Symbol.FIELD), field(report, LastQty.FIELD),
            field(report, LastPx.FIELD), side.getString(ClOrdID.FIELD), party.getString(PartyID.FIELD),
            field(report, LastRptRequested.FIELD));
    }

    @Override
    public void fromApp(Message message, SessionID id) throws FieldNotFound {
        if (message.isSetField(MDReqID.FIELD) || message.isSetField(TradeRequestID.FIELD)) {
            say("told " + message.toString().replace('\u0001', '|'));
            if (message.isSetField(NoSides.FIELD)) {
                say(trade(message));
            }
            return;
        }
        say(String.join(" ", "report", field(message, MsgType.FIELD), field(message, ClOrdID.FIELD),
            field(message, ExecType.FIELD), field(message, ExecID.FIELD), field(message, LastQty.FIELD),
            field(message, CumQty.FIELD), field(message, PossResend.FIELD), field(message, PossDupFlag.FIELD),
            field(message, Text.FIELD).replace(' ', '_')));
    }

    /** Says nothing: what matters is on the standard output. */
    private static final class SilentLogFactory implements LogFactory {
        @Override
        public Log create(SessionID id) {
            return new Log() {
                @Override
                public void clear() {}

                @Override
                public void onIncoming(String message) {}

                @Override
                public void onOutgoing(String message) {}

                @Override
                public void onEvent(String text) {}

                @Override
                public void onErrorEvent(String text) {
                    say("error " + text);
                }
            };
        }
    }
}
